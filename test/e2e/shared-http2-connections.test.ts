import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { beforeAll, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { otherBounds, startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2 } from '../support/http/http2.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  fieldBlock,
  frame,
  frameTypes,
  requestFields,
} from '../support/http/raw-http2.ts'
import { eventually } from '../support/wait/eventually.ts'

// A trusted proxy sends the requests of many clients over one connection. If a client does not read its responses, the proxy does not open
// the windows of its streams. The requests of another client on the connection must not suffer from it.

const maxUnreadBytes = 1024 * 1024
const slow = '203.0.113.9'
const other = '198.51.100.7'

let backend: Backend

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url === '/page') response.end(Buffer.alloc(30_000))
    else if (request.url === '/events') response.write('x')
    else response.writeHead(204).end()
  })
})

async function startBehindProxy(): Promise<{ gateway: HostedGateway; proxy: ClientHttp2Session }> {
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    TRUSTED_PROXIES: '127.0.0.1',
    ...otherBounds({ maxUnreadBytes }),
  })
  return {
    gateway,
    proxy: connectHttp2(gateway.port, { cleartext: true, settings: { initialWindowSize: 0 } }),
  }
}

function ask(proxy: ClientHttp2Session, client: string, path: string): ClientHttp2Stream {
  const stream = proxy.request({ ':path': path, 'x-forwarded-for': client })
  stream.on('error', () => undefined)
  return stream
}

async function untilUnread({ adminPort }: HostedGateway, bytes: number): Promise<void> {
  await eventually(`${bytes} bytes are unread`, async () => {
    const { body } = await send(adminPort, 'GET', '/metrics')
    const unread = Number(/^sluice_table_entries\{table="unread-bytes"\} (\d+)$/m.exec(body)?.[1])
    expect(unread).toBeGreaterThan(bytes)
  })
}

test('while requests of a client that does not read are held back, those of others on the connection are served', async () => {
  const { gateway, proxy } = await startBehindProxy()
  for (let i = 0; i < 16; i++) ask(proxy, slow, '/page')
  await untilUnread(gateway, maxUnreadBytes / 2)
  const answered: string[] = []
  for (let i = 0; i < 5; i++) ask(proxy, slow, '/').on('response', () => answered.push(slow))
  await once(ask(proxy, other, '/'), 'response')
  // Of those that are held back, one is served every two seconds.
  expect(answered.length).toBeLessThan(5)
  proxy.destroy()
})

test('if a client leaves too much unread, its streams are reset, and those of others on the connection go on', async () => {
  const { gateway, proxy } = await startBehindProxy()
  const events = ask(proxy, other, '/events')
  await once(events, 'response')
  const resets: number[] = []
  for (let i = 0; i < 60; i++) {
    const stream = ask(proxy, slow, '/page')
    stream.on('close', () => resets.push(stream.rstCode))
  }
  await gateway.waitForLine(/clients leave too many responses unread/)
  await eventually('streams are reset', () => expect(resets.length).toBeGreaterThan(0))
  await once(ask(proxy, other, '/'), 'response')
  expect(events.closed).toBe(false)
  expect(proxy.closed).toBe(false)
  proxy.destroy()
})

// Proxies pass on heads that are larger than the gateway has announced.
test('a head of more than four times the maximum is refused, and requests of others on the connection go on', async () => {
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    TRUSTED_PROXIES: '127.0.0.1',
    MAX_HEADER_SIZE: '8k',
  })
  const proxy = await connectRawHttp2(gateway.port, { cleartext: true })
  proxy.send(frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/events')))
  await proxy.waitFor(({ type }) => type === frameTypes.data)
  const large = frame(frameTypes.continuation, 0, 3, fieldBlock([['x-large', 'x'.repeat(16_000)]]))
  proxy.send(
    frame(frameTypes.headers, endStream, 3, requestFields('GET', '/')),
    ...[large, large, large],
    frame(frameTypes.continuation, endHeaders, 3),
    frame(frameTypes.headers, endHeaders | endStream, 5, requestFields('GET', '/')),
  )
  for (const id of [3, 5])
    await proxy.waitFor(({ type, stream }) => type === frameTypes.headers && stream === id)
  expect(proxy.received.some(({ type }) => type === frameTypes.rstStream)).toBe(false)
  proxy.socket.destroy()
})
