import { beforeAll, describe, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  requestFields,
  type RawHttp2,
} from '../support/http/raw-http2.ts'

let backend: Backend
let gateway: HostedGateway

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url !== '/hang') response.end('x')
  })
  gateway = await startHosted({ UPSTREAM_URL: backend.url, HEADERS_TIMEOUT: '1s', SEND_TIMEOUT: '1s' })
})

const noWindow = frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
const connectFields = Buffer.from([
  0,
  ...text(':method'),
  ...text('CONNECT'),
  0,
  ...text(':authority'),
  ...text('a:1'),
])

function text(value: string): number[] {
  return [value.length, ...Buffer.from(value)]
}

/** Connects and sends a request that lasts, so that the connection is not idle. */
async function connectBusy(): Promise<RawHttp2> {
  const raw = await connectRawHttp2(gateway.port, { cleartext: true })
  raw.send(frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/hang')))
  return raw
}

describe('an HTTP/2 client cannot keep its connection open', () => {
  test.each([
    [
      'the answer to headers that are too large',
      requestFields('GET', '/', ['x-a', 'x'.repeat(16_300)], ['x-b', 'x']),
    ],
    ['the answer to CONNECT', connectFields],
  ])('by not reading %s', async (_, fields) => {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true })
    const rest = fields.subarray(16_384)
    raw.send(
      noWindow,
      frame(
        frameTypes.headers,
        endStream | (rest.length > 0 ? 0 : endHeaders),
        1,
        fields.subarray(0, 16_384),
      ),
      ...(rest.length > 0 ? [frame(frameTypes.continuation, endHeaders, 1, rest)] : []),
    )
    await raw.waitFor(({ type, stream }) => type === frameTypes.headers && stream === 1)
    await raw.waitFor(({ type, stream }) => type === frameTypes.rstStream && stream === 1)
    raw.socket.destroy()
  })

  test('a connection with an endless header block is closed', async () => {
    const raw = await connectBusy()
    raw.send(frame(frameTypes.headers, endStream, 3, requestFields('GET', '/')))
    await raw.closed
  })

  test('a connection with a frame that never ends is closed', async () => {
    const raw = await connectBusy()
    const whole = frame(frameTypes.headers, endStream, 3, requestFields('GET', '/'))
    raw.send(whole.subarray(0, 20))
    await raw.closed
  })
})
