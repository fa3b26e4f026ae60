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

test('an HTTP/2 client may ping with each response, as gRPC clients do', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const raw = await connectRawHttp2(gateway.port, { cleartext: true })
  for (let id = 1; id < 2_600; id += 2) {
    // The ACK returns this payload, so each ACK can be matched with its ping.
    const opaque = Buffer.alloc(8)
    opaque.writeUInt32BE(id)
    const before = raw.received.length
    raw.send(frame(frameTypes.headers, endHeaders | endStream, id, requestFields('GET', '/')))
    await raw.waitFor((each) => each.stream === id && (each.flags & endStream) !== 0, before)
    raw.send(frame(frameTypes.ping, 0, 0, opaque))
    await raw.waitFor((each) => each.type === frameTypes.ping && each.payload.equals(opaque), before)
  }
  expect(raw.received.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  raw.socket.destroy()
})
