import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { ClientHttp2Stream, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { request as httpRequest } from 'node:http'
import { Readable } from 'node:stream'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { authorityFile, readPair } from '../support/network/certificates.ts'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { otherBounds, startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { echo, startHttp2Backend, type Http2Backend } from '../support/http/http2-backend.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { eventually } from '../support/wait/eventually.ts'

// HTTP/2 to the backend: without TLS (h2c://), and with TLS if the backend chooses it.

/** Returns the fields without the properties that Node adds. */
function plain(fields: object): object {
  return Object.fromEntries(Object.entries(fields))
}

/** Describes a body by its length, and by its content if it is not one letter throughout. */
function briefly(body: string): string {
  return `${body.length}: ${body.replaceAll(/x{20,}/g, (run) => `(x, ${run.length} times)`).slice(0, 500)}`
}

const overTls = { UPSTREAM_CA_FILE: authorityFile }

/** Answers the last request for `/slow`. */
let finishSlow = (): void => undefined

function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  switch (headers[':path']) {
    case '/hang':
      return
    case '/slow':
      finishSlow = () => echo(stream, headers)
      return
    case '/trailers':
      stream.respond({ ':status': 200, 'x-head': 'h' }, { waitForTrailers: true })
      stream.on('wantTrailers', () =>
        stream.sendTrailers({
          'x-checksum': 'abc',
          'x-twice': ['1', '2'],
          'set-cookie': ['evil=1'],
          'x-forwarded-for': '6.6.6.6',
        }),
      )
      stream.end('body')
      return
    case '/only-trailers':
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-checksum': 'none' }))
      stream.end()
      return
    case '/reset':
      stream.respond({ ':status': 200 })
      stream.write('part', () => stream.destroy(new Error('reset')))
      return
    case '/reset-without-error':
      stream.respond({ ':status': 200 })
      stream.write('part', () => stream.destroy())
      return
    case '/early':
      stream.respond({ ':status': 413 })
      stream.end('too much')
      return
    case '/hints':
      stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
      break
    case '/no-content':
      stream.respond({ ':status': 204 }, { endStream: true })
      return
    default:
  }
  echo(stream, headers)
}

let backend: Http2Backend
let gateway: HostedGateway

beforeAll(async () => {
  backend = await startHttp2Backend(answer)
  gateway = await startHosted({ UPSTREAM_URL: backend.url })
})

describe.each([
  ['without TLS', false],
  ['with TLS', true],
])('an HTTP/2 backend %s', (_, tls) => {
  let own: Http2Backend
  let before: HostedGateway

  beforeAll(async () => {
    own = await startHttp2Backend(answer, { tls })
    before = await startHosted({ UPSTREAM_URL: own.url, ...overTls })
  })

  test('an HTTP/2 backend gets HTTP/1.1 and HTTP/2 requests on one connection', async () => {
    const session = connectHttp2(before.port, { cleartext: true })
    const replies = await Promise.all([
      ...Array.from({ length: 60 }, (_each, i) => sendHttp2(session, { ':path': `/a${i}` })),
      ...Array.from({ length: 20 }, (_each, i) =>
        before.send('POST', `/b${i}`, { body: 'x'.repeat(i * 1000) }),
      ),
    ])
    expect(replies.every(({ status }) => status === 200)).toBe(true)
    const expected = [
      ...Array.from({ length: 60 }, (_each, i) => `GET /a${i} `),
      ...Array.from({ length: 20 }, (_each, i) => `POST /b${i} ${'x'.repeat(i * 1000)}`),
    ]
    // Described briefly, as the bodies are long.
    const others = replies
      .map(({ body }, i) => ({ at: i, body, expected: expected[i] ?? '' }))
      .filter((each) => each.body !== each.expected)
      .map(({ at, body, expected: whole }) => `${at}: ${whole.length} bytes expected, not ${briefly(body)}`)
    expect(others).toEqual([])
    expect(own.sessions.length).toBe(1)
  })

  test('an HTTP/2 backend gets the client headers as over HTTP/1.1, and no hop-by-hop headers', async () => {
    await before.send('GET', '/seen?a=1', {
      headers: {
        'x-twice': ['1', '2'],
        cookie: 'a=b',
        te: 'gzip',
        connection: 'keep-alive, x-hop',
        'x-hop': '1',
      },
    })
    const seen = own.seen.find(({ headers }) => headers[':path'] === '/seen?a=1')
    expect(seen?.headers).toMatchObject({
      ':method': 'GET',
      ':authority': `127.0.0.1:${before.port}`,
      ':scheme': tls ? 'https' : 'http',
      'x-forwarded-for': '127.0.0.1',
      'x-twice': '1, 2',
      cookie: 'a=b',
      via: '1.1 sluice',
    })
    for (const name of ['host', 'connection', 'te', 'x-hop', 'transfer-encoding'])
      expect(seen?.rawHeaders).not.toContain(name)
  })
})

test('with TLS a backend that chooses HTTP/1.1 gets HTTP/1.1', async () => {
  const server = createTlsServer(readPair('first'), (request, response) => response.end(request.httpVersion))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  let connections = 0
  server.on('secureConnection', () => connections++)
  const { port } = server.address() as AddressInfo
  const before = await startHosted({ UPSTREAM_URL: `https://localhost:${port}`, ...overTls })
  for (let i = 0; i < 5; i++) expect((await before.send('GET', '/')).body).toBe('1.1')
  expect(connections).toBe(1)
  server.close()
  server.closeAllConnections()
})

test('an HTTP/1.1 backend behind h2c:// is a 502', async () => {
  const http1 = await startBackend()
  const before = await startHosted({
    UPSTREAM_URL: `h2c://127.0.0.1:${http1.port}`,
    UPSTREAM_CONNECT_TIMEOUT: '2s',
  })
  expect((await before.send('GET', '/')).status).toBe(502)
})

test('a handshake for a WebSocket, which HTTP/2 cannot carry, is a 502 and reaches no backend', async () => {
  const count = backend.seen.length
  const reply = await sendRaw(
    gateway.port,
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  expect(reply).toContain('HTTP/1.1 502')
  expect(backend.seen.length).toBe(count)
})

describe('trailers of a response', () => {
  test('response trailers reach an HTTP/2 client, without fields that must not be trailers', async () => {
    const session = connectHttp2(gateway.port, { cleartext: true })
    const stream = session.request({ ':path': '/trailers' })
    stream.resume()
    const [trailers] = (await once(stream, 'trailers')) as [IncomingHttpHeaders]
    expect(plain(trailers)).toEqual({ 'x-checksum': 'abc', 'x-twice': '1, 2' })
    const empty = session.request({ ':path': '/only-trailers' })
    empty.resume()
    expect(plain(((await once(empty, 'trailers')) as [object])[0])).toEqual({ 'x-checksum': 'none' })
  })

  test.each([
    ['TE: trailers\r\nConnection: TE\r\n', 'x-checksum: abc\r\nx-twice: 1\r\nx-twice: 2\r\n'],
    ['', ''],
    ['TE: gzip\r\n', ''],
  ])('reach an HTTP/1.1 client that accepts them: %j', async (te, trailers) => {
    const received = await sendRaw(
      gateway.port,
      `GET /trailers HTTP/1.1\r\nHost: a\r\n${te}Connection: close\r\n\r\n`,
    )
    expect(received.slice(received.indexOf('\r\n\r\n') + 4)).toBe(`4\r\nbody\r\n0\r\n${trailers}\r\n`)
  })

  test('trailers from an HTTP/1.1 backend reach clients of both versions', async () => {
    const http1 = await startBackend((_request, response) => {
      response.writeHead(200, { trailer: 'x-checksum' })
      response.write('body')
      response.addTrailers({ 'x-checksum': 'abc', host: 'evil', 'transfer-encoding': 'chunked' })
      response.end()
    })
    const before = await startHosted({ UPSTREAM_URL: http1.url })
    const stream = connectHttp2(before.port, { cleartext: true }).request({ ':path': '/' })
    stream.resume()
    expect(plain(((await once(stream, 'trailers')) as [object])[0])).toEqual({ 'x-checksum': 'abc' })
    const received = await sendRaw(
      before.port,
      'GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n',
    )
    expect(received).toMatch(/\r\n4\r\nbody\r\n0\r\nx-checksum: abc\r\n\r\n$/)
  })
})

// grpc-go's own server answers HEADERS with the id of an earlier stream with GOAWAY, and closes the connection with the calls of others.
describe('trailers of a request', () => {
  test('request trailers do not reach an HTTP/2 backend, and do not end the requests of others', async () => {
    const trailers: unknown[] = []
    let answerOther = (): void => undefined
    const own = await startHttp2Backend((stream, headers) => {
      stream.on('trailers', (fields: object) => {
        trailers.push(plain(fields))
        stream.session?.destroy()
      })
      if (headers[':path'] === '/other') answerOther = () => echo(stream, headers)
      else echo(stream, headers)
    })
    const before = await startHosted({ UPSTREAM_URL: own.url })
    const other = before.send('POST', '/other', { body: 'other' })
    await eventually('the other request has arrived', () => expect(own.seen.length).toBe(1))
    const session = connectHttp2(before.port, { cleartext: true })
    const stream = session.request({ ':path': '/two', ':method': 'POST' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }))
    stream.resume().end('body')
    const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    await once(stream, 'close')
    const reply = await sendRaw(
      before.port,
      'POST /one HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n' +
        '1\r\na\r\n0\r\nX-Sum: 2\r\n\r\n',
    )
    expect([head[':status'], reply.split('\r\n')[0]]).toEqual([200, 'HTTP/1.1 200 OK'])
    answerOther()
    expect(await other).toMatchObject({ status: 200, body: 'POST /other other' })
    expect(trailers).toEqual([])
    expect(own.sessions.length).toBe(1)
  })
})

describe('a response', () => {
  test.each([
    ['of a stream that is reset', '/reset'],
    ['of a stream that is reset without error before its end', '/reset-without-error'],
  ])('%s does not look complete', async (_, path) => {
    const reply = await sendHttp2(connectHttp2(gateway.port, { cleartext: true }), { ':path': path })
    expect(reply.resetCode).not.toBe(0)
    await expect(gateway.send('GET', path)).rejects.toThrow()
  })

  test('responses without a body, to HEAD, and after early hints are forwarded', async () => {
    expect(await gateway.send('GET', '/no-content')).toMatchObject({ status: 204, body: '' })
    expect(await gateway.send('HEAD', '/')).toMatchObject({ status: 200, body: '' })
    const stream = connectHttp2(gateway.port, { cleartext: true }).request({ ':path': '/hints' })
    stream.resume()
    expect(((await once(stream, 'headers')) as [object])[0]).toMatchObject({ link: '</a.css>; rel=preload' })
  })

  test('a response that arrives before the request body was sent is passed on', async () => {
    const session = connectHttp2(gateway.port, { cleartext: true })
    const reply = await sendHttp2(session, { ':path': '/early', ':method': 'POST' }, (stream) => {
      stream.write('begun')
    })
    expect(reply).toMatchObject({ status: 413, body: 'too much' })
  })
})

test('a large request head reaches an HTTP/2 backend, if MAX_HEADER_SIZE allows it', async () => {
  const own = await startHttp2Backend(answer, { settings: { maxHeaderListSize: 2 ** 20 } })
  const before = await startHosted({ UPSTREAM_URL: own.url, MAX_HEADER_SIZE: '1m' })
  const names = Array.from({ length: 13 }, (_, i) => `x-large-${i}`)
  const headers = Object.fromEntries(names.map((name) => [name, 'x'.repeat(8 * 1024)]))
  for (let i = 0; i < 3; i++) expect((await before.send('GET', '/', { headers })).status).toBe(200)
  for (const seen of own.seen) expect(seen.headers).toMatchObject(headers)
  expect(own.sessions.length).toBe(3)
})

describe('a request with a large head', () => {
  const large = { headers: { 'x-large': 'x'.repeat(9 * 1024) } }

  /** Starts a backend that closes the connection for a large header, as nginx does, and does not announce its limit. */
  function startStrictBackend(): Promise<Http2Backend> {
    return startHttp2Backend((stream, headers) => {
      if (headers['x-large'] === undefined) return answer(stream, headers)
      stream.session?.goaway(11)
      stream.session?.destroy()
    })
  }

  function arrived(own: Http2Backend, path: string): Promise<unknown> {
    return eventually(`${path} has arrived`, () => own.seen.some(({ headers }) => headers[':path'] === path))
  }

  test.each(['1', '16'])(
    'a large request head fails no other request if the backend closes its connection, with %s connections',
    async (connections) => {
      const own = await startStrictBackend()
      const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: connections })
      const slow = before.send('POST', '/slow')
      await arrived(own, '/slow')
      expect((await before.send('POST', '/large', large)).status).toBe(502)
      expect((await before.send('GET', '/small')).status).toBe(200)
      finishSlow()
      expect((await slow).status).toBe(200)
      const [first, second] = own.sessions
      expect(own.seen.map(({ session }) => session)).toEqual([first, second, first])
    },
  )

  test('requests with large heads share no connection with later requests', async () => {
    const own = await startHttp2Backend(answer)
    const before = await startHosted({ UPSTREAM_URL: own.url })
    const slow = before.send('POST', '/slow', large)
    await arrived(own, '/slow')
    expect((await before.send('GET', '/small')).status).toBe(200)
    expect((await before.send('GET', '/other', large)).status).toBe(200)
    finishSlow()
    expect((await slow).status).toBe(200)
    expect(own.sessions.length).toBe(2)
  })

  test('requests with large heads open few connections, and leave other requests theirs', async () => {
    const own = await startHttp2Backend(answer)
    const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: '2' })
    const sockets = Array.from({ length: 12 }, (_, i) =>
      connect({ port: before.port, host: '127.0.0.1', localAddress: `127.0.0.${i + 11}` }),
    )
    for (const socket of sockets)
      socket.write(`GET /hang HTTP/1.1\r\nHost: a\r\nX-Large: ${large.headers['x-large']}\r\n\r\n`)
    await eventually('three requests with large heads have arrived', () =>
      expect(own.seen.length).toBeGreaterThanOrEqual(3),
    )
    expect((await before.send('GET', '/small')).status).toBe(200)
    expect(own.sessions.length).toBeLessThanOrEqual(4)
    for (const socket of sockets) socket.destroy()
  })

  test.each(['1', '4'])(
    'requests with large heads of one client leave connections for those of others, with %s connections',
    async (connections) => {
      const own = await startHttp2Backend(answer)
      const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: connections })
      const sockets = Array.from({ length: 12 }, () =>
        connect({ port: before.port, host: '127.0.0.1', localAddress: '127.0.0.9' }),
      )
      for (const socket of sockets)
        socket.write(`GET /hang HTTP/1.1\r\nHost: a\r\nX-Large: ${large.headers['x-large']}\r\n\r\n`)
      await eventually('the client has some', () => expect(own.seen.length).toBeGreaterThanOrEqual(2))
      expect((await before.send('GET', '/other', large)).status).toBe(200)
      expect((await before.send('GET', '/small')).status).toBe(200)
      for (const socket of sockets) socket.destroy()
    },
  )

  test('requests with large heads are served however many connections only finish other requests', async () => {
    const own = await startHttp2Backend((stream, headers) => {
      if (headers[':path'] !== '/hang') return answer(stream, headers)
      stream.session?.goaway(0, 2 ** 31 - 1)
      stream.respond({ ':status': 200 })
      stream.write('part')
    })
    const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: '2' })
    const sockets = []
    for (let hanging = 0; hanging < 4; hanging++) {
      const socket = connect(before.port, '127.0.0.1')
      sockets.push(socket)
      socket.write('GET /hang HTTP/1.1\r\nHost: a\r\n\r\n')
      await once(socket, 'data')
    }
    expect(own.sessions.length).toBe(4)
    expect((await before.send('GET', '/', large)).status).toBe(200)
    for (const socket of sockets) socket.destroy()
  })
})

test('a request head larger than an HTTP/2 backend accepts is answered 431, and not sent', async () => {
  const own = await startHttp2Backend(answer, { settings: { maxHeaderListSize: 4096 } })
  const before = await startHosted({ UPSTREAM_URL: own.url })
  // Netty and Jetty close the connection for such a head, with the requests of all clients on it.
  const headers = { 'x-large': 'x'.repeat(4096) }
  expect((await before.send('GET', '/', { headers })).status).toBe(431)
  expect((await before.send('POST', '/', { headers, body: 'a' })).status).toBe(431)
  expect((await before.send('POST', '/', { body: 'a' })).status).toBe(200)
  expect(own.seen.map(({ headers: seen }) => seen['x-large'])).toEqual([undefined])
  expect(own.sessions.length).toBe(1)
  await before.waitForLine(/"reason":"[^"]*SETTINGS_MAX_HEADER_LIST_SIZE/)
})

test('a request that its client cancels is reset at the backend', async () => {
  const before = backend.resets.length
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('GET /hang HTTP/1.1\r\nHost: a\r\n\r\n')
  await eventually('the request has arrived', () =>
    expect(backend.seen.filter(({ headers }) => headers[':path'] === '/hang').length).toBe(1),
  )
  socket.destroy()
  await eventually('the backend has heard that the stream was cancelled', () =>
    expect(backend.resets.slice(before)).toEqual([8]),
  )
  expect(backend.sessions.filter(({ closed }) => !closed).length).toBe(1)
})

test('the gateway opens as many streams as the backend allows, then further connections', async () => {
  const own = await startHttp2Backend((stream, headers) => void setTimeout(() => echo(stream, headers), 30), {
    settings: { maxConcurrentStreams: 5 },
  })
  const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: '2' })
  const session = connectHttp2(before.port, { cleartext: true })
  const replies = await Promise.all(
    Array.from({ length: 50 }, (_, i) => sendHttp2(session, { ':path': `/${i}` })),
  )
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
  expect(own.sessions.length).toBe(2)
  expect(own.resets).toEqual([])
})

describe('GOAWAY', () => {
  test('GOAWAY loses no request that the backend has not started, with its body', async () => {
    let refusals = 0
    const own = await startHttp2Backend((stream, headers) => {
      const { session } = stream
      if (session && own.sessions.length === 1 && refusals === 0) {
        refusals++
        // The GOAWAY excludes all streams of this session except the first.
        session.goaway(0, 1)
        setTimeout(() => session.close(), 50)
      }
      if (own.sessions.length > 1 || stream.id === 1) echo(stream, headers)
    })
    const before = await startHosted({ UPSTREAM_URL: own.url })
    const session = connectHttp2(before.port, { cleartext: true })
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        sendHttp2(session, { ':path': `/${i}`, ':method': 'POST' }, `body ${i}`),
      ),
    )
    expect(replies.map(({ status, body }) => `${status} ${body}`)).toEqual(
      replies.map((_, i) => `200 POST /${i} body ${i}`),
    )
  })

  test('GOAWAY from a backend that refuses every stream is an error in the end', async () => {
    const own = await startHttp2Backend((stream) => stream.close(7))
    const before = await startHosted({ UPSTREAM_URL: own.url })
    const response = await before.send('POST', '/', { body: 'b' })
    expect(response.status).toBe(502)
    expect(own.seen.length).toBe(4)
  })
})

test('a request on a connection that the backend closes is sent again where that is harmless', async () => {
  const own = await startHttp2Backend((stream, headers) => {
    if (own.seen.length === 2 || own.seen.length === 5) own.sockets.at(-1)?.destroy()
    else echo(stream, headers)
  })
  const before = await startHosted({ UPSTREAM_URL: own.url })
  expect((await before.send('GET', '/1')).status).toBe(200)
  expect((await before.send('GET', '/2')).status).toBe(200)
  expect((await before.send('GET', '/3')).status).toBe(200)
  expect((await before.send('POST', '/4')).status).toBe(502)
})

test('a backend that does not answer is a 504, and its next requests get another connection', async () => {
  const own = await startHttp2Backend(answer)
  // Long enough to answer the next request, even on a busy machine.
  const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_TIMEOUT: '2s' })
  expect((await before.send('GET', '/hang')).status).toBe(504)
  expect((await before.send('GET', '/')).status).toBe(200)
  expect(own.sessions.length).toBe(2)
})

test('an unread response does not stall the others', async () => {
  const own = await startHttp2Backend((stream, headers) => {
    if (headers[':path'] !== '/large') return echo(stream, headers)
    stream.respond({ ':status': 200 })
    Readable.from(Array.from({ length: 128 }, () => Buffer.alloc(64 * 1024))).pipe(stream)
  })
  const before = await startHosted({ UPSTREAM_URL: own.url })
  const unread = Array.from({ length: 5 }, () => {
    const request = httpRequest({ port: before.port, host: '127.0.0.1', path: '/large', agent: false })
    request.on('error', () => undefined)
    request.on('response', (response) => response.pause())
    request.end()
    return request
  })
  await Promise.all(unread.map((request) => once(request, 'response')))
  for (let i = 0; i < 20; i++) expect((await before.send('GET', `/${i}`)).status).toBe(200)
  expect(own.sessions.length).toBe(1)
  for (const request of unread) request.destroy()
})

test('a client that opens as many streams as it can leaves some for others, however few the backend allows', async () => {
  const few = await startHttp2Backend(answer, { settings: { maxConcurrentStreams: 8 } })
  const before = await startHosted({ UPSTREAM_URL: few.url, UPSTREAM_CONNECTIONS: '2' })
  const greedy = connectHttp2(before.port, { cleartext: true, localAddress: '127.0.0.2' })
  // From the first request on, the gateway knows how many streams the backend allows.
  await sendHttp2(greedy, { ':path': '/' })
  const hanging = Array.from({ length: 40 }, () => sendHttp2(greedy, { ':path': '/hang' }))
  const begun = (): number => few.seen.filter(({ headers }) => headers[':path'] === '/hang').length
  await eventually('twelve streams have begun', () => expect(begun()).toBeGreaterThanOrEqual(12))
  const other = connectHttp2(before.port, { cleartext: true, localAddress: '127.0.0.9' })
  for (let i = 0; i < 5; i++) expect((await sendHttp2(other, { ':path': '/' })).status).toBe(200)
  greedy.destroy()
  await Promise.all(hanging)
})

/** nginx and Envoy end a connection after so many requests, by GOAWAY, and finish those that it has. */
test.each<[string, Record<string, string>, boolean, number]>([
  ['the backend has said GOAWAY', {}, true, 100],
  ['the backend takes one request at a time and has said GOAWAY', {}, true, 1],
  ['they have served as many requests as they may', otherBounds({ upstreamMaxRequests: 1 }), false, 100],
])(
  'connections that only finish responses leave room for another, where %s',
  async (_, bounds, ends, most) => {
    const answerOrLast = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void => {
      if (headers[':path'] !== '/events') return echo(stream, headers)
      stream.respond({ ':status': 200 })
      stream.write('event')
      if (ends) stream.session?.close()
    }
    const own = await startHttp2Backend(answerOrLast, { settings: { maxConcurrentStreams: most } })
    const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: '2', ...bounds })
    const client = connectHttp2(before.port, { cleartext: true })
    const lasting: ClientHttp2Stream[] = []
    for (let round = 1; round <= 4; round++) {
      const stream = client.request({ ':path': '/events' })
      lasting.push(stream)
      const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders]
      expect(head[':status']).toBe(200)
    }
    await eventually('they count as connections with a long response', async () => {
      const { body: metrics } = await send(before.adminPort, 'GET', '/metrics')
      expect(metrics).toContain('sluice_table_entries{table="upstream-connections"} 0\n')
      expect(metrics).toContain('sluice_table_entries{table="upstream-streams"} 4\n')
    })
    expect((await before.send('GET', '/')).status).toBe(200)
    expect(own.sessions.length).toBe(5)
    expect(lasting.map(({ closed }) => closed)).toEqual([false, false, false, false])
    client.destroy()
  },
)

test('connections that only finish responses are bounded, and further requests get 503', async () => {
  const own = await startHttp2Backend((stream) => {
    stream.respond({ ':status': 200 })
    stream.write('event')
    stream.session?.close()
  })
  const before = await startHosted({
    UPSTREAM_URL: own.url,
    UPSTREAM_CONNECTIONS: '1',
    UPSTREAM_STREAMS: '2',
    UPSTREAM_CONNECT_TIMEOUT: '500ms',
  })
  const client = connectHttp2(before.port, { cleartext: true })
  const statuses: unknown[] = []
  for (let round = 1; round <= 4; round++) {
    const stream = client.request({ ':path': '/' })
    const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    statuses.push(head[':status'])
  }
  expect(statuses).toEqual([200, 200, 200, 503])
  expect(own.sessions.length).toBe(3)
  client.destroy()
})

/** A connection on which a hundred requests were reset takes no further request, and stays open while a request on it lasts. */
test('a connection with a hundred resets serves no further request, even if it is the only one', async () => {
  const own = await startHttp2Backend(answer)
  const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: '1' })
  // Node's server would close the connection after a thousand. Each early answer is followed by a reset of the rest of the upload.
  for (let i = 0; i < 150; i++)
    expect((await before.send('POST', '/early', { body: 'x'.repeat(200_000) })).status).toBe(413)
  expect(own.sessions.length).toBe(2)
})

test('a client that resets many requests while one of its own lasts does not use up the connections', async () => {
  const own = await startHttp2Backend(answer)
  const before = await startHosted({ UPSTREAM_URL: own.url, UPSTREAM_CONNECTIONS: '2' })
  for (let round = 0; round < 3; round++) {
    const session = connectHttp2(before.port, { cleartext: true, localAddress: '127.0.0.2' })
    const seen = own.seen.length
    void sendHttp2(session, { ':path': '/hang' })
    await eventually('the request has arrived', () => expect(own.seen.length).toBe(seen + 1))
    for (let i = 1; i <= 110; i++) {
      const stream = session.request({ ':path': '/hang' })
      stream.on('error', () => undefined)
      await eventually(`request ${i} has arrived`, () => expect(own.seen.length).toBe(seen + 1 + i))
      stream.close(8)
    }
  }
  await eventually('all streams are reset', () => expect(own.resets.length).toBe(330))
  expect((await before.send('GET', '/', { from: '127.0.0.9' })).status).toBe(200)
  expect(own.sessions.length).toBeLessThanOrEqual(2)
})
