import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
  uint32,
} from '../support/http/raw-http2.ts'

// Floods of frames that cost a client next to nothing: rapid reset (CVE-2023-44487), resets that a client makes the server send
// (CVE-2025-8671), endless CONTINUATION (CVE-2024-27983), and PING, SETTINGS and empty DATA (CVE-2019-9512, 9515, 9518). After each, the
// connection must be closed and memory must be as before; other clients must be served all the time.

const padded = 0x8
const requests = 50_000
const maxGrowthBytes = 64 * 1024 * 1024

let backend: Backend
let gateway: GatewayProcess

async function readResidentBytes(): Promise<number> {
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  return Number(/^sluice_process_resident_memory_bytes (\S+)$/m.exec(body)?.[1])
}

/** The frames of `count` requests, each followed by the frames that `then` returns for its stream. */
function requestsWith(count: number, flags: number, then: (stream: number) => Buffer[]): Buffer[] {
  return Array.from({ length: count }, (_, i) => {
    const stream = 2 * i + 1
    return Buffer.concat([
      frame(frameTypes.headers, endHeaders | flags, stream, requestFields('GET', '/')),
      ...then(stream),
    ])
  })
}

/** A million copies of a frame. */
function manyOf(one: Buffer): Buffer {
  return Buffer.concat(Array.from({ length: 1_000_000 }, () => one))
}

const floods: readonly [string, () => Buffer[]][] = [
  [
    '50,000 requests, each cancelled at once by RST_STREAM',
    () => requestsWith(requests, endStream, (stream) => [frame(frameTypes.rstStream, 0, stream, uint32(8))]),
  ],
  [
    '50,000 requests, each reset by the server for a WINDOW_UPDATE of 0',
    () =>
      requestsWith(requests, endStream, (stream) => [frame(frameTypes.windowUpdate, 0, stream, uint32(0))]),
  ],
  [
    '50,000 requests, each with DATA after END_STREAM',
    () =>
      requestsWith(requests, endStream, (stream) => [frame(frameTypes.data, 0, stream, Buffer.from('x'))]),
  ],
  [
    'CONTINUATION frames without END_HEADERS',
    () => [
      frame(frameTypes.headers, 0, 1, requestFields('GET', '/')),
      ...Array.from({ length: 10_000 }, () =>
        frame(frameTypes.continuation, 0, 1, Buffer.alloc(1_000, 0x20)),
      ),
    ],
  ],
  ['a million PING frames', () => [manyOf(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))]],
  ['a million SETTINGS frames', () => [manyOf(frame(frameTypes.settings, 0, 0))]],
  [
    'a million empty DATA frames',
    () => [
      frame(frameTypes.headers, endHeaders, 1, requestFields('POST', '/')),
      manyOf(frame(frameTypes.data, 0, 1)),
    ],
  ],
  [
    'a million DATA frames of padding',
    () => [
      frame(frameTypes.headers, endHeaders, 1, requestFields('POST', '/')),
      manyOf(frame(frameTypes.data, padded, 1, Buffer.of(0))),
    ],
  ],
  [
    '3,000 headers that each stand for 64 MB',
    () => {
      const entry = Buffer.concat([Buffer.of(0x40, 1, 0x61, 127, 0xbd, 0x1d), Buffer.alloc(3_900, 'a')])
      return [
        frame(frameTypes.headers, endHeaders, 1, Buffer.concat([requestFields('POST', '/'), entry])),
        ...Array.from({ length: 3_000 }, (_, i) =>
          frame(frameTypes.headers, endHeaders | endStream, 2 * i + 3, Buffer.alloc(16_384, 0xbe)),
        ),
      ]
    },
  ],
]

describe.each([
  ['over TLS', false],
  ['without TLS', true],
])('an HTTP/2 flood %s', (_, cleartext) => {
  beforeAll(async () => {
    backend = await startBackend()
    gateway = await startGateway({ UPSTREAM_URL: backend.url, ...(cleartext ? {} : tlsSettings()) })
    for (let warmUp = 0; warmUp < 200; warmUp++)
      await sendHttp2(connectHttp2(gateway.port, { cleartext }), { ':path': '/' })
  })

  test.each(floods)(
    'of %s does not stop the gateway, which closes the connection',
    async (_name, makeFrames) => {
      const before = await readResidentBytes()
      const seenBefore = backend.seen.length
      const raw = await connectRawHttp2(gateway.port, { cleartext })
      raw.send(...makeFrames())
      expect((await sendHttp2(connectHttp2(gateway.port, { cleartext }), { ':path': '/' })).status).toBe(200)
      await raw.closed
      expect(backend.seen.length - seenBefore).toBeLessThan(100)
      expect((await readResidentBytes()) - before).toBeLessThan(maxGrowthBytes)
    },
  )
})
