import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
} from '../support/http/raw-http2.ts'

// RFC 9113 section 5.2. A client can fill a window once per round trip. A window of 64 KiB for the connection would limit all uploads on it
// to 640 KB a second at 100 ms, such as those of all users behind one proxy.

const STREAMS = 100
const STREAM_WINDOW = 65_535

test('the window of a connection is larger than those of all its streams together', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const raw = await connectRawHttp2(gateway.port, { cleartext: true })
  const onConnection = ({ type, stream }: { type: number; stream: number }): boolean =>
    type === frameTypes.windowUpdate && stream === 0
  const { payload } = await raw.waitFor(onConnection)
  const window = STREAM_WINDOW + payload.readUInt32BE(0)
  expect(window).toBeGreaterThan(STREAMS * STREAM_WINDOW)

  // The gateway gives back the bytes that it has read, so that the window lasts for more than one upload.
  const rounds = Math.ceil(window / STREAM_WINDOW)
  const content = [16_384, 16_384, 16_384, 16_383].map((bytes) => Buffer.alloc(bytes))
  for (let i = 0; i < rounds; i++) {
    const id = 2 * i + 1
    raw.send(frame(frameTypes.headers, endHeaders, id, requestFields('POST', '/')))
    raw.send(...content.map((piece, at) => frame(frameTypes.data, at === 3 ? endStream : 0, id, piece)))
    await raw.waitFor(({ stream, flags }) => stream === id && (flags & endStream) !== 0)
  }
  const returned = raw.received.filter(onConnection).slice(1)
  const bytes = returned.reduce((sum, { payload: increment }) => sum + increment.readUInt32BE(0), 0)
  expect(bytes).toBeGreaterThan(window / 2)
  expect(bytes).toBeLessThanOrEqual(rounds * STREAM_WINDOW)
  raw.socket.destroy()
})
