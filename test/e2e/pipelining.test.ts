import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { eventually } from '../support/wait/eventually.ts'
import { atRest } from '../support/wait/passes.ts'

/** The responses to requests for paths that begin with `/held`, which the tests send. */
const held = new Map<string, ServerResponse>()
let backend: Backend
let gateway: HostedGateway
/** A gateway like `gateway`, over HTTPS. */
let secure: HostedGateway

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url?.startsWith('/held')) held.set(request.url, response)
    else request.resume().on('end', () => response.end(`answer to ${request.url ?? ''}`))
  })
  backend.server.on('upgrade', (request, socket) => {
    backend.seen.push({ method: 'GET', url: request.url ?? '', rawHeaders: request.rawHeaders })
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
    )
    socket.pipe(socket)
  })
  const settings = { UPSTREAM_URL: backend.url, UPSTREAM_CONNECTIONS: '4', UPSTREAM_QUEUE: '4' }
  gateway = await startHosted(settings)
  secure = await startHosted({ ...settings, ...tlsSettings() })
})

beforeEach(() => {
  backend.seen.length = 0
})

async function connectSecurely(port: number): Promise<TLSSocket> {
  const socket = connectTls({ port, host: 'localhost', ca: readFileSync(authorityFile) })
  await once(socket, 'secureConnect')
  return socket
}

/** Resolves with the response object of a request for this path once the request has arrived at the backend. */
function arrival(path: string): Promise<ServerResponse> {
  return eventually(`${path} has arrived`, () => held.get(path) ?? false)
}

function get(path: string, fields = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`
}

function paths(): string[] {
  return backend.seen.map(({ url }) => url)
}

test('requests sent at once are carried out and answered one after another', async () => {
  const post = 'POST /two HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody'
  const answers = sendRaw(gateway.port, get('/held-first') + post + get('/three', 'Connection: close\r\n'))
  const response = await arrival('/held-first')
  expect(paths()).toEqual(['/held-first'])
  response.end('first')
  expect(await answers).toMatch(/\r\n\r\nfirst.*\r\n\r\nanswer to \/two.*\r\n\r\nanswer to \/three$/s)
  expect(paths()).toEqual(['/held-first', '/two', '/three'])
})

test.each([
  ['that asks for the end', get('/one', 'Connection: close\r\n')],
  ['in HTTP/1.0', 'GET /one HTTP/1.0\r\nHost: a\r\n\r\n'],
  ['whose body is not awaited', 'POST /one HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 9\r\n\r\n'],
])('bytes after a request %s are not carried out', async (_, first) => {
  await sendRaw(gateway.port, first + get('/two') + get('/three'))
  expect(paths().filter((path) => path !== '/one')).toEqual([])
})

test('a request is answered although the bytes after it are malformed', async () => {
  const answers = sendRaw(gateway.port, `${get('/held-sound')}GARBAGE\r\n\r\n${get('/never')}`)
  const response = await arrival('/held-sound')
  response.end('first')
  expect(await answers).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nfirstHTTP\/1\.1 400 /s)
  expect(paths()).toEqual(['/held-sound'])
})

test('a client that sends a thousand requests at once has one connection to the backend', async () => {
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(get('/held-many').repeat(1_000))
  await arrival('/held-many')
  expect(await Promise.all([1, 2, 3].map(() => send(gateway.port, 'GET', '/other')))).toMatchObject([
    { status: 200 },
    { status: 200 },
    { status: 200 },
  ])
  expect(paths().filter((path) => path === '/held-many')).toHaveLength(1)
  socket.destroy()
})

test('reading stops while requests wait, and goes on when they are served', async () => {
  const many = 1_600
  const socket = connect(gateway.port, '127.0.0.1')
  let answers = ''
  socket.on('data', (chunk) => (answers += chunk.toString('latin1')))
  socket.write(get('/held-stop'))
  const first = await arrival('/held-stop')
  // More than all buffers on the way hold together.
  for (let sent = 0; sent < 8; sent++)
    socket.write(get('/x', `X-Fill: ${'x'.repeat(7_000)}\r\n`).repeat(many / 8))
  expect(await atRest(() => socket.writableLength)).toBeGreaterThan(1_000_000)
  first.end()
  await once(socket, 'drain')
  socket.write(get('/last', 'Connection: close\r\n'))
  await once(socket, 'close')
  expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(many + 2)
  expect(answers.endsWith('answer to /last')).toBe(true)
})

test.each([15, 16, 17, 18, 19, 33, 100])(
  'a connection goes on after %i requests at once that the gateway answers itself',
  async (count) => {
    const own = 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'
    for (const port of [gateway.port, secure.port]) {
      const socket = port === secure.port ? await connectSecurely(port) : connect(port, '127.0.0.1')
      let answers = ''
      socket.on('data', (chunk: Buffer) => (answers += chunk.toString('latin1')))
      socket.write(own.repeat(count))
      while ((answers.match(/HTTP\/1\.1 204 /g) ?? []).length < count) await once(socket, 'data')
      socket.write(get('/last', 'Connection: close\r\n'))
      await once(socket, 'close')
      expect(answers.endsWith('answer to /last')).toBe(true)
    }
  },
)

const handshake =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

test.each([
  ['HTTP', () => connect(gateway.port, '127.0.0.1')],
  ['HTTPS', () => connectSecurely(secure.port)],
])('a handshake is served when the requests before it are answered, over %s', async (protocol, open) => {
  const socket = await open()
  let answers = ''
  socket.on('data', (chunk: Buffer) => (answers += chunk.toString('latin1')))
  const before = `/held-before-${protocol}`
  socket.write(get(before) + get('/second') + get('/chat', handshake) + 'later bytes')
  const response = await arrival(before)
  expect(paths()).toEqual([before])
  response.end('first')
  while (!answers.endsWith('later bytes')) await once(socket, 'data')
  expect(answers).toMatch(/\r\n\r\nfirst.*\r\n\r\nanswer to \/secondHTTP\/1\.1 101 .*\r\n\r\nlater bytes$/s)
  expect(paths()).toEqual([before, '/second', '/chat'])
  socket.end()
  await once(socket, 'close')
})

test('no bug is logged if a client resets the connection while a CONNECT waits for its turn', async () => {
  const socket = connect(gateway.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`${get('/held-before-connect')}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`)
  const response = await arrival('/held-before-connect')
  socket.resetAndDestroy()
  await once(response, 'close')
  expect((await send(gateway.port, 'GET', '/after')).status).toBe(200)
  expect(gateway.output()).not.toMatch(/uncaughtException/)
})
