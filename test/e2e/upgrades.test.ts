import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startRawBackend } from '../support/http/backend.ts'
import { authorityFile, readPair } from '../support/network/certificates.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Upgrades to protocols other than WebSocket, as Docker (tcp, h2c) and Kubernetes (SPDY/3.1) use them: with any method and a body, and with
 * tunnels that either side may half-close. Only upgrades that UPGRADE_PROTOCOLS names are passed on, as traffic in a tunnel is not counted.
 */

type Answer = (head: string, body: string) => string

const agree: Answer = (head) =>
  `HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: ${/^upgrade: (.*)\r$/im.exec(head)?.[1] ?? ''}\r\n\r\n`

/** Starts a backend that answers once the head and a body of `bodyBytes` bytes have arrived, and returns its connections. */
async function startBackend(bodyBytes: number, answer: Answer = agree) {
  const heads: string[] = []
  const tunnels: Socket[] = []
  const backend = await startRawBackend((socket) => {
    socket.allowHalfOpen = true
    let text = ''
    socket.on('data', function read(piece: Buffer) {
      text += piece.toString('latin1')
      const end = text.indexOf('\r\n\r\n') + 4
      if (end < 4 || text.length < end + bodyBytes) return
      socket.off('data', read)
      socket.pause()
      heads.push(text.slice(0, end))
      const rest = text.slice(end + bodyBytes)
      socket.write(answer(text, text.slice(end, end + bodyBytes)))
      if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'))
      tunnels.push(socket)
    })
  })
  const next = async (): Promise<Socket> => {
    await eventually('the backend has a tunnel', () => tunnels.length > 0)
    return tunnels.shift() ?? expect.unreachable()
  }
  return { backend, heads, next }
}

function start(url: string, protocols = 'tcp, SPDY/3.1'): Promise<HostedGateway> {
  return startHosted({ UPSTREAM_URL: url, UPGRADE_PROTOCOLS: protocols })
}

function begin(port: number, request: string): Socket {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  socket.write(request)
  return socket
}

function handshake(protocol: string, body = '', method = 'POST', more = ''): string {
  const framing = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  return `${method} /exec/1/start HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${framing}${more}\r\n${body}`
}

async function readHead(socket: Socket): Promise<string> {
  let head = ''
  while (!head.includes('\r\n\r\n')) head += String((await once(socket, 'data'))[0])
  return head
}

async function readToEnd(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (piece: Buffer) => (text += piece.toString()))
  socket.resume()
  await once(socket, 'end')
  return text
}

describe.each([
  ['tcp', 'POST', ''],
  ['tcp', 'POST', '{"Detach":false,"Tty":true}'],
  ['TCP', 'GET', ''],
  ['SPDY/3.1', 'POST', ''],
])('an upgrade to %s by %s with the body %j', (protocol, method, body) => {
  test('becomes a tunnel in which each side ends alone', async () => {
    const { backend, heads, next } = await startBackend(body.length)
    const gateway = await start(backend.url)
    const client = begin(gateway.port, handshake(protocol, body, method))
    const head = await readHead(client)
    expect(head).toMatch(/^HTTP\/1\.1 101 /)
    expect(head.toLowerCase()).toContain(`upgrade: ${protocol.toLowerCase()}\r\n`)
    expect(head).toContain('content-type: application/vnd.docker.raw-stream\r\n')
    expect(heads[0]).toContain(`\r\nconnection: upgrade\r\nupgrade: ${protocol}\r\n`)
    const upstream = await next()
    const received = readToEnd(upstream)
    client.end('input')
    expect(await received).toBe('input')
    upstream.write('output after the end of the input')
    upstream.end()
    expect(await readToEnd(client)).toBe('output after the end of the input')
  })

  test('the client can still send after the backend has ended its direction', async () => {
    const { backend, next } = await startBackend(body.length)
    const gateway = await start(backend.url)
    const client = begin(gateway.port, handshake(protocol, body, method))
    await readHead(client)
    const upstream = await next()
    const received = readToEnd(upstream)
    upstream.end('bye')
    expect(await readToEnd(client)).toBe('bye')
    client.end('late input')
    expect(await received).toBe('late input')
  })

  test('forwards bytes that the client has sent after the handshake', async () => {
    const { backend, next } = await startBackend(body.length)
    const gateway = await start(backend.url)
    const client = begin(gateway.port, `${handshake(protocol, body, method)}GET / HTTP/1.1\r\n`)
    await readHead(client)
    client.end()
    expect(await readToEnd(await next())).toBe('GET / HTTP/1.1\r\n')
  })
})

test('a client can still send after a backend with TLS has ended its direction', async () => {
  let received: Promise<string> | undefined
  const server = createTlsServer({ ...readPair('first'), allowHalfOpen: true }, (socket) => {
    socket.once('data', (head: Buffer) => {
      received = readToEnd(socket)
      socket.end(`${agree(head.toString(), '')}bye`)
    })
  })
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const gateway = await startHosted({
    UPSTREAM_URL: `https://127.0.0.1:${port}`,
    UPSTREAM_CA_FILE: authorityFile,
    UPGRADE_PROTOCOLS: 'tcp',
  })
  const client = begin(gateway.port, handshake('tcp'))
  expect(await readToEnd(client)).toMatch(/^HTTP\/1\.1 101 .*bye$/s)
  client.end('late input')
  expect(await received).toBe('late input')
})

test('a body that comes slowly is whole before the tunnel', async () => {
  const { backend, next } = await startBackend(4)
  const gateway = await start(backend.url)
  const client = begin(gateway.port, handshake('tcp', 'body').slice(0, -3))
  client.write('ody')
  await readHead(client)
  client.end('more')
  expect(await readToEnd(await next())).toBe('more')
})

test('a backend that switches in the middle of the body is 502, as the rest would be read as the other protocol', async () => {
  const { backend } = await startBackend(0)
  const gateway = await start(backend.url)
  const long = `POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 100000\r\n\r\n`
  expect(await readHead(begin(gateway.port, long + 'a'.repeat(70_000)))).toMatch(/^HTTP\/1\.1 502 /)
})

test.each([
  ['another protocol', 'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ['no protocol', 'HTTP/1.1 101 Switching\r\n\r\n'],
])('a 101 for %s becomes a 502', async (_, answer) => {
  const { backend } = await startBackend(0, () => answer)
  const gateway = await start(backend.url)
  expect(await readHead(begin(gateway.port, handshake('tcp')))).toMatch(/^HTTP\/1\.1 502 /)
})

test.each([
  ['one that is not named', handshake('h2c')],
  ['a list', handshake('tcp, h2c')],
  ['one that Connection does not name', handshake('tcp').replace('Connection: Upgrade\r\n', '')],
  ['one in HTTP/1.0', handshake('tcp').replace('HTTP/1.1', 'HTTP/1.0')],
])('%s is served as a request', async (_, request) => {
  const { backend, heads } = await startBackend(
    0,
    () => 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
  )
  const gateway = await start(backend.url)
  expect(await readHead(begin(gateway.port, request))).toMatch(/^HTTP\/1\.[01] 200 /)
  expect(heads[0]).not.toMatch(/upgrade/i)
})

test('no upgrade is passed on by default', async () => {
  const { backend, heads } = await startBackend(
    0,
    () => 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
  )
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  for (const protocol of ['tcp', 'h2c', 'SPDY/3.1'])
    expect(await sendRaw(gateway.port, handshake(protocol, '', 'POST', 'Connection: close\r\n'))).toMatch(
      / 200 /,
    )
  expect(heads.join('')).not.toMatch(/upgrade/i)
})

test('an idle tunnel ends, and the gateway adds no bytes to it', async () => {
  const { backend, next } = await startBackend(0)
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    UPGRADE_PROTOCOLS: 'tcp',
    // Long enough for both sides to write, even on a busy machine.
    TUNNEL_IDLE_TIMEOUT: '1500ms',
  })
  const client = begin(gateway.port, handshake('tcp'))
  await readHead(client)
  const upstream = await next()
  const received = [readToEnd(client), readToEnd(upstream)]
  // Read as the head of a WebSocket frame, these bytes would be incomplete.
  upstream.write('\x82\x7e')
  client.write('\x82\x7e')
  expect(await Promise.all(received)).toEqual(
    ['\x82\x7e', '\x82\x7e'].map((text) => Buffer.from(text).toString()),
  )
})

test('an upgrade counts under rules like any request', async () => {
  const { backend } = await startBackend(0)
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, UPGRADE_PROTOCOLS: 'tcp' })
  const statuses = []
  for (let i = 0; i < 7; i++) {
    const request = handshake('tcp').replace('/exec/1/start', '/forgot-password')
    statuses.push(Number((await readHead(begin(gateway.port, request))).slice(9, 12)))
  }
  expect(statuses).toEqual([101, 101, 101, 101, 101, 429, 429])
})
