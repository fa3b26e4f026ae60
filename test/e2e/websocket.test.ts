import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startRawBackend } from '../support/http/backend.ts'
import { sendRaw } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'

const servers: WebSocketServer[] = []

afterAll(() => {
  for (const server of servers) server.close()
})

async function startEcho(): Promise<{ url: string; paths: string[] }> {
  const paths: string[] = []
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  servers.push(server)
  server.on('connection', (socket, request) => {
    paths.push(request.url ?? '')
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
}

const handshake =
  'GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

test('an echo, both ways, and an orderly close', async () => {
  const backend = await startEcho()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/a/../chat`)
  await once(client, 'open')
  const large = Buffer.alloc(1_000_000, 'y')
  client.send(large)
  const [echo] = (await once(client, 'message')) as [Buffer]
  expect(echo.equals(large)).toBe(true)
  client.close(1000, 'done')
  const [code] = (await once(client, 'close')) as [number]
  expect(code).toBe(1000)
  expect(backend.paths).toEqual(['/chat'])
})

test('handshakes count against the rules', async () => {
  const backend = await startEcho()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  for (let sent = 0; sent < 100; sent++) {
    const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/client-side-api`)
    await once(client, 'open')
    client.terminate()
  }
  const answer = await sendRaw(gateway.port, `${handshake.replace('/chat', '/client-side-api')}\r\n`)
  expect(answer).toMatch(/^HTTP\/1\.1 429 .*Please try after a while!"}$/s)
  expect(backend.paths).toHaveLength(100)
})

test("the backend's refusal of a WebSocket is passed on unchanged", async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', () =>
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Why: no\r\n\r\nno way'),
    )
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  expect(await sendRaw(gateway.port, `${handshake}\r\n`)).toMatch(
    /^HTTP\/1\.1 403 .*x-why: no\r\n.*\r\n\r\nno way$/s,
  )
})

// RFC 6455 section 4.1: only the digest of the client's own key shows that the backend has accepted this handshake.
test.each([
  ['no Sec-WebSocket-Accept', ''],
  ['that of another key', 'Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n'],
  ['it in other letters', 'Sec-WebSocket-Accept: S3PPLMBITXAQ9KYGZZHZRBK+XOO=\r\n'],
  ['it twice', 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n'.repeat(2)],
  [
    'it for one hop',
    'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nConnection: sec-websocket-accept\r\n',
  ],
])('a 101 with %s becomes no tunnel', async (_, line) => {
  const agreed = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
  let tunnelled = ''
  const backend = await startRawBackend((socket) => {
    socket.once('data', () => {
      socket.write(`${agreed}${line}\r\n`)
      socket.on('data', (chunk) => (tunnelled += chunk.toString()))
    })
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const answer = await sendRaw(gateway.port, `${handshake}\r\nGET /unseen HTTP/1.1\r\nHost: a\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1\.1 502 /)
  expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  expect(tunnelled).toBe('')
  await gateway.waitForLine(/unexpected 101 Switching Protocols, or invalid/)
})

test('a handshake with another WebSocket version gets a 426 with the supported one', async () => {
  const backend = await startEcho()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const answer = await sendRaw(gateway.port, `${handshake.replace('13', '8')}\r\n`)
  expect(answer).toMatch(/^HTTP\/1\.1 426 .*upgrade: websocket\r\nsec-websocket-version: 13\r\n/s)
  expect(backend.paths).toHaveLength(0)
})

test.each([
  ['a short key', handshake.replace('dGhlIHNhbXBsZSBub25jZQ==', 'short')],
  ['a body', `${handshake}Content-Length: 4\r\n`],
  ['chunks', `${handshake}Transfer-Encoding: chunked\r\n`],
  ['another method', handshake.replace('GET', 'POST')],
])('a handshake with %s is refused here', async (_, head) => {
  const backend = await startEcho()
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  expect(await sendRaw(gateway.port, `${head}\r\n`)).toMatch(
    /^HTTP\/1\.1 400 .*{"code":400,"error":"Bad request"}$/s,
  )
  expect(backend.paths).toHaveLength(0)
})

test('an upgrade to another protocol is ignored: the request is served without it', async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', (chunk) => {
      const offered = /upgrade/i.test(chunk.toString())
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n${offered ? 'taken' : 'plain'}`)
    })
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const answer = await sendRaw(
    gateway.port,
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n',
  )
  expect(answer).toMatch(/\r\n\r\nplain$/)
})

test('a connection continues after an ignored Upgrade, even with bytes sent at once', async () => {
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const offer = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'
  const next = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  expect((await sendRaw(gateway.port, offer + next)).match(/HTTP\/1\.1 200 /g)).toHaveLength(2)

  const client = connect(gateway.port, '127.0.0.1')
  let answers = ''
  client.on('data', (chunk) => (answers += chunk.toString()))
  client.write(offer)
  await once(client, 'data')
  client.write(next)
  await once(client, 'close')
  expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(2)
})
