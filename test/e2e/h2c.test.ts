import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { fieldLines, startBackend, type Backend } from '../support/http/backend.ts'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  preface,
  requestFields,
} from '../support/http/raw-http2.ts'
import { eventually } from '../support/wait/eventually.ts'

// HTTP/2 without TLS by prior knowledge (RFC 9113 section 3.3), on the port that also serves HTTP/1.1.

const run = promisify(execFile)

let backend: Backend
let gateway: HostedGateway

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url === '/hang') return
    request.resume().on('end', () => response.end(`${request.method} ${request.url} ${request.httpVersion}`))
  })
  gateway = await startHosted({ UPSTREAM_URL: backend.url })
})

const get = frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/first'))

function isResponse({ type, stream }: { type: number; stream: number }): boolean {
  return type === frameTypes.headers && stream === 1
}

describe('a connection that begins with the HTTP/2 preface', () => {
  test('a connection that begins with the HTTP/2 preface is served like one over TLS', async () => {
    const session = connectHttp2(gateway.port, { cleartext: true })
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => sendHttp2(session, { ':path': `/${i}` })),
    )
    expect(replies.map(({ status, body }) => `${status} ${body}`)).toEqual(
      replies.map((_, i) => `200 GET /${i} 1.1`),
    )
    const body = Buffer.alloc(200_000, 'x')
    const upload = await sendHttp2(session, { ':path': '/up', ':method': 'POST' }, body)
    expect(upload.body).toBe('POST /up 1.1')
    const seen = backend.seen.find(({ url }) => url === '/1')
    expect(seen && fieldLines(seen, 'via')).toEqual(['2.0 sluice'])
    expect(seen && fieldLines(seen, 'x-forwarded-proto')).toEqual(['http'])
  })

  test('a connection that begins with the HTTP/2 preface is counted by the same rules as HTTP/1.1', async () => {
    const counted = await startHosted({ UPSTREAM_URL: backend.url })
    const session = connectHttp2(counted.port, { cleartext: true })
    const login = { ':path': '/forgot-password', ':method': 'POST' }
    const statuses: (number | undefined)[] = []
    for (let i = 0; i < 4; i++) statuses.push((await sendHttp2(session, login)).status)
    statuses.push((await counted.send('POST', '/forgot-password')).status)
    const over = await sendHttp2(session, login)
    expect([...statuses, over.status]).toEqual([200, 200, 200, 200, 200, 429])
    expect(over.body).toBe('{"code":429,"error":"Too many requests, Please try after a while!"}')
    expect((await counted.send('POST', '/forgot-password')).status).toBe(429)
  })

  test('a connection that begins with the HTTP/2 preface may come in pieces', async () => {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true, inPieces: true })
    raw.send(get)
    await raw.waitFor(isResponse)
    raw.socket.destroy()
  })

  test('a connection that begins with the HTTP/2 preface may have requests in its first packet', async () => {
    const raw = await connectRawHttp2(gateway.port, { cleartext: true })
    raw.send(get)
    await raw.waitFor(isResponse)
    raw.socket.destroy()
  })

  test.each([
    ['an empty line before it', '\r\n'],
    ['a request before it', 'GET /before HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a request and its body before it', 'POST /before HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab'],
  ])('a connection that begins with the HTTP/2 preface is refused with %s', async (_, before) => {
    const hidden = frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/hidden'))
    const received = await sendRaw(gateway.port, before + preface + hidden.toString('latin1'))
    expect(received).toMatch(/HTTP\/1\.1 400 Bad Request\r\n[^]*"code":400/)
    expect(backend.seen.filter(({ url }) => url === '/hidden' || url === '*')).toEqual([])
  })

  test('a connection that begins with the HTTP/2 preface is served by curl', async () => {
    const { stdout } = await run('curl', [
      ...['-sS', '--http2-prior-knowledge', '-w', ' HTTP/%{http_version}'],
      `http://127.0.0.1:${gateway.port}/curl`,
    ])
    expect(stdout).toBe('GET /curl 1.1 HTTP/2')
  })
})

test('an h2c client is the one that a PROXY header names', async () => {
  const behind = await startHosted({
    UPSTREAM_URL: backend.url,
    PROXY_PROTOCOL: '1',
    TRUSTED_PROXIES: '127.0.0.1',
  })
  const before = 'PROXY TCP4 203.0.113.7 192.0.2.1 12345 443\r\n'
  for (const inPieces of [false, true]) {
    const seen = backend.seen.length
    const raw = await connectRawHttp2(behind.port, { cleartext: true, inPieces, before })
    raw.send(get)
    await raw.waitFor(isResponse)
    const request = backend.seen[seen]
    expect(request && fieldLines(request, 'x-real-ip')).toEqual(['203.0.113.7'])
    raw.socket.destroy()
  }
})

test('a connection without requests ends in time, with GOAWAY', async () => {
  const hasty = await startHosted({
    UPSTREAM_URL: backend.url,
    // Long enough to read the first bytes, even on a busy machine.
    HEADERS_TIMEOUT: '1500ms',
    IDLE_TIMEOUT: '300ms',
  })
  const unused = await connectRawHttp2(hasty.port, { cleartext: true })
  const used = await connectRawHttp2(hasty.port, { cleartext: true })
  used.send(get)
  await used.waitFor(isResponse)
  await Promise.all([unused, used].map((raw) => raw.waitFor(({ type }) => type === frameTypes.goaway)))
  await Promise.all([unused.closed, used.closed])
  const unfinished = await sendRaw(hasty.port, preface.slice(0, 20))
  expect(unfinished).toContain('HTTP/1.1 408')
})

test.each(['end', 'destroy'] as const)(
  'the backend learns that a waiting client disconnected (%s)',
  async (how) => {
    const gone: string[] = []
    const slow = await startBackend(
      (_request, response) => void response.on('close', () => gone.push('gone')),
    )
    const before = await startHosted({ UPSTREAM_URL: slow.url })
    const raw = await connectRawHttp2(before.port, { cleartext: true })
    raw.send(get)
    await eventually('the slow request has arrived', () => expect(slow.seen.length).toBe(1))
    raw.socket[how]()
    await eventually('the backend has heard that the client left', () => expect(gone).toEqual(['gone']))
  },
)

test('at MAX_CONNECTIONS an idle connection is closed for a new one, and a busy one is not', async () => {
  const full = await startHosted({ UPSTREAM_URL: backend.url, MAX_CONNECTIONS: '2' })
  const busy = await connectRawHttp2(full.port, { cleartext: true })
  busy.send(frame(frameTypes.headers, endHeaders | endStream, 1, requestFields('GET', '/hang')))
  const idle = await connectRawHttp2(full.port, { cleartext: true })
  idle.send(get)
  await idle.waitFor(isResponse)
  // The connection is idle once its stream has closed, which the client cannot observe.
  const third = (): Promise<number> =>
    send(full.port, 'GET', '/third').then(
      ({ status }) => status,
      () => 0,
    )
  await eventually('another connection serves', async () => expect(await third()).toBe(200))
  await idle.waitFor(({ type }) => type === frameTypes.goaway)
  await idle.closed
  expect(busy.socket.destroyed).toBe(false)
})

test('the HTTP/2 bounds hold: streams, a client that resets them, and the size of headers', async () => {
  const session = connectHttp2(gateway.port, { cleartext: true })
  await once(session, 'remoteSettings')
  expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 100, maxHeaderListSize: 16_384 })
  const reset = await connectRawHttp2(gateway.port, { cleartext: true })
  const floods = Array.from({ length: 5_000 }, (_, i) => [
    frame(frameTypes.headers, endHeaders | endStream, 2 * i + 1, requestFields('GET', '/hang')),
    frame(frameTypes.rstStream, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8])),
  ])
  reset.send(...floods.flat())
  await reset.closed
})
