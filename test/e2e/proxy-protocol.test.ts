import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { fieldLines, startBackend, type Backend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { sendHttp2 } from '../support/http/http2.ts'
import { freePort } from '../support/network/ports.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

const trusted = '127.0.0.1'
const stranger = '127.0.0.2'
const request = 'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n\r\n'
const version1 = 'PROXY TCP4 203.0.113.7 192.0.2.1 12345 443\r\n'
const signature = '\r\n\r\n\0\r\nQUIT\n'
const version2 = `${signature}\x21\x11\x00\x0c\xcb\x00\x71\x07\xc0\x00\x02\x01\x30\x39\x01\xbb`
const local = `${signature}\x20\x00\x00\x00`

let backend: Backend
let gateway: HostedGateway

beforeAll(async () => {
  backend = await startBackend()
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: trusted,
    MAX_CONNECTIONS_PER_CLIENT: '2',
  })
})

/** Opens a connection from a loopback address, and writes pieces one by one. */
async function open(from: string, port: number, ...pieces: string[]): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from, noDelay: true })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  for (const piece of pieces) {
    socket.write(piece, 'latin1')
    if (pieces.length > 1) await passes(1)
  }
  return socket
}

async function readAll(socket: Socket): Promise<string> {
  let received = ''
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  await once(socket, 'close')
  return received
}

/** The default, which is long enough for a header that arrives byte by byte on a busy machine. */
const HEADERS_TIMEOUT_MS = 10_000

async function exchange(from: string, ...pieces: string[]): Promise<string> {
  return readAll(await open(from, gateway.port, ...pieces))
}

function clientSeen(): string[] {
  const seen = backend.seen.at(-1)
  return seen ? [...fieldLines(seen, 'x-real-ip'), ...fieldLines(seen, 'x-forwarded-for')] : []
}

describe('a trusted proxy', () => {
  test.each([
    ['version 1', version1],
    ['version 2', version2],
  ])('names its client by %s, who cannot name another one', async (_, header) => {
    for (const pieces of [[header + request], [header, request], (header + request).split('')]) {
      backend.seen.length = 0
      expect(await exchange(trusted, ...pieces)).toMatch(/^HTTP\/1\.1 200 /)
      expect(clientSeen()).toEqual(['203.0.113.7', '203.0.113.7'])
    }
  })

  // The attack: the proxy passes bytes on unchanged, so the client itself has written the headers that name a client.
  test.each([
    ['LOCAL', local],
    ['LOCAL with an address', version2.replace('\x21', '\x20')],
    ['UNKNOWN', 'PROXY UNKNOWN\r\n'],
    ['UNKNOWN with addresses', 'PROXY UNKNOWN 203.0.113.7 192.0.2.1 12345 443\r\n'],
    ['no family', `${signature}\x21\x00\x00\x00`],
    ['a Unix socket', `${signature}\x21\x31\x00\xd8${'\0'.repeat(216)}`],
  ])('a trusted proxy whose PROXY header names no client counts as the client: %s', async (_, header) => {
    expect(await exchange(trusted, header + request)).toMatch(/^HTTP\/1\.1 200 /)
    expect(clientSeen()).toEqual([trusted, trusted])
  })

  test('speaks for a further proxy, which names the client in the request', async () => {
    await exchange(trusted, `PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n${request}`)
    expect(clientSeen()).toEqual(['9.9.9.9', '9.9.9.9, 127.0.0.1'])
  })

  test('a trusted proxy that sends no PROXY header, half of one, or a broken one gets no answer', async () => {
    const before = backend.seen.length
    const startedMs = performance.now()
    expect(await exchange(trusted, request)).toBe('')
    expect(await exchange(trusted, `PROXY TCP4 203.0.113.7\r\n${request}`)).toBe('')
    expect(performance.now() - startedMs).toBeLessThan(HEADERS_TIMEOUT_MS / 2)
    const hasty = await startHosted({
      UPSTREAM_URL: backend.url,
      PROXY_PROTOCOL: '1',
      TRUSTED_PROXIES: trusted,
      HEADERS_TIMEOUT: '500ms',
    })
    const sentMs = performance.now()
    expect(await readAll(await open(trusted, hasty.port, 'PROXY TCP4'))).toBe('')
    expect(performance.now() - sentMs).toBeGreaterThan(450)
    expect(backend.seen).toHaveLength(before)
  })
})

// A load balancer's TCP check connects and disconnects. Otherwise each check would keep a file open for `HEADERS_TIMEOUT`.
test.each([
  ['nothing', ''],
  ['half a PROXY header', 'PROXY TCP4 203.0.113.7'],
])('a trusted proxy that ends its direction after %s is disconnected at once', async (_, sent) => {
  const patient = await startHosted({
    UPSTREAM_URL: backend.url,
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: trusted,
    HEADERS_TIMEOUT: '5m',
  })
  const socket = await open(trusted, patient.port, sent)
  socket.end()
  expect(await readAll(socket)).toBe('')
})

describe('anybody else', () => {
  test('a peer that is no trusted proxy is served without a PROXY header', async () => {
    expect(await exchange(stranger, request)).toMatch(/^HTTP\/1\.1 200 /)
    expect(clientSeen()).toEqual([stranger, stranger])
  })

  test('a peer that is no trusted proxy cannot name a client', async () => {
    const before = backend.seen.length
    expect(await exchange(stranger, version1 + request)).toMatch(/^HTTP\/1\.1 400 /)
    expect(await exchange(stranger, version2 + request)).toMatch(/^HTTP\/1\.1 400 /)
    expect(backend.seen).toHaveLength(before)
  })
})

test('connections are counted by the client in the PROXY header', async () => {
  const idle = [await open(trusted, gateway.port, version1), await open(trusted, gateway.port, version1)]
  // The response to a request shows that earlier bytes on other connections have been read.
  expect(await exchange(trusted, local + request)).toMatch(/^HTTP\/1\.1 200 /)
  expect(await exchange(trusted, version1 + request)).toBe('')
  expect(await exchange(trusted, version1.replace('113.7', '113.8') + request)).toMatch(/^HTTP\/1\.1 200 /)
  for (const socket of idle) {
    socket.destroy()
    await once(socket, 'close')
  }
  expect(await exchange(trusted, version1 + request)).toMatch(/^HTTP\/1\.1 200 /)
})

test('limits count by the client in the PROXY header', async () => {
  const post = request.replace('GET /', 'POST /forgot-password')
  for (let sent = 0; sent < 5; sent++)
    expect(await exchange(trusted, version2 + post)).toMatch(/^HTTP\/1\.1 200 /)
  expect(await exchange(trusted, version2 + post)).toMatch(/^HTTP\/1\.1 429 /)
  expect(await exchange(trusted, local + post)).toMatch(/^HTTP\/1\.1 200 /)
})

test('the PROXY header comes before TLS, and holds for all requests of an HTTP/2 connection', async () => {
  const secure = await startHosted({
    UPSTREAM_URL: backend.url,
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: trusted,
    ...tlsSettings(),
  })
  for (const alpn of ['http/1.1', 'h2']) {
    const socket = await open(trusted, secure.port, ...(alpn === 'h2' ? version2.split('') : [version1]))
    const tls = connectTls({ socket, ALPNProtocols: [alpn], rejectUnauthorized: false })
    if (alpn === 'h2') {
      const session = connectHttp2('https://localhost', { createConnection: () => tls })
      for (const path of ['/one', '/two']) {
        expect((await sendHttp2(session, { ':path': path })).status).toBe(200)
        expect(clientSeen()).toEqual(['203.0.113.7', '203.0.113.7'])
      }
      session.destroy()
    } else {
      tls.write(request)
      expect(await readAll(tls)).toMatch(/^HTTP\/1\.1 200 /)
      expect(clientSeen()).toEqual(['203.0.113.7', '203.0.113.7'])
    }
  }
})

test('a proxy may use one port for two addresses of the gateway', async () => {
  const everywhere = await startHosted({
    UPSTREAM_URL: backend.url,
    HOST: '0.0.0.0',
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: trusted,
  })
  const localPort = await freePort()
  const openTo = async (host: string, header: string): Promise<Socket> => {
    const socket = connect({ host, port: everywhere.port, localAddress: trusted, localPort })
    await once(socket, 'connect')
    socket.write(header)
    return socket
  }
  const first = await openTo('127.0.0.1', version1)
  const second = await openTo('127.0.0.2', 'PROXY TCP4 203.0.113.8 192.0.2.1 12345 443\r\n')
  await passes(50)
  first.write(request)
  expect(await readAll(first)).toMatch(/^HTTP\/1\.1 200 /)
  expect(clientSeen()).toEqual(['203.0.113.7', '203.0.113.7'])
  second.write(request)
  expect(await readAll(second)).toMatch(/^HTTP\/1\.1 200 /)
  expect(clientSeen()).toEqual(['203.0.113.8', '203.0.113.8'])
})

test.each([
  ['without TLS', {}],
  ['before TLS', tlsSettings()],
])('a connection on which only the PROXY header has arrived does not delay a stop, %s', async (_, tls) => {
  const stopping = await startGateway({
    UPSTREAM_URL: backend.url,
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: trusted,
    HEADERS_TIMEOUT: '60s',
    SHUTDOWN_GRACE: '60s',
    ...tls,
  })
  const spare = await open(trusted, stopping.port, version1)
  // Its header has been read: it came before that of a connection that got a response. Over TLS, this is 400 and the end.
  await readAll(await open(trusted, stopping.port, version1 + request))
  const beganMs = performance.now()
  expect(await stopping.process.stop('SIGTERM')).toBe(0)
  expect(performance.now() - beganMs).toBeLessThan(40_000)
  spare.destroy()
})

test('a request that came with its PROXY header is answered although the gateway stops', async () => {
  const held: (() => void)[] = []
  const slow = await startBackend((_, response) => void held.push(() => response.end('late')))
  const stopping = await startGateway({
    UPSTREAM_URL: slow.url,
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: trusted,
  })
  const socket = await open(trusted, stopping.port, version1 + request)
  const reply = readAll(socket)
  await eventually('the request has arrived', () => expect(held).toHaveLength(1))
  const exit = stopping.process.stop('SIGTERM')
  await stopping.process.waitForLine(/"msg":"stopping"/)
  held[0]?.()
  expect(await reply).toMatch(/^HTTP\/1\.1 200 .*late/s)
  expect(await exit).toBe(0)
})
