import { createServer, request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { createApiRoutes } from '../../proxy/admin/api/api.ts'
import { limitConnections } from '../../proxy/admin/connections.ts'
import { createHealth, type Health, type StoreState } from '../../proxy/admin/health.ts'
import { createMetrics } from '../../proxy/telemetry/metrics/metrics.ts'
import { renderMetrics, watchProcess } from '../../proxy/telemetry/metrics/prometheus.ts'
import { adminServerOptions, createAdminHandler, type AdminDeps } from '../../proxy/admin/server.ts'
import { createLog } from '../../shared/log.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { eventually } from '../support/wait/eventually.ts'

type Answer = { status: number; fields: IncomingHttpHeaders; body: string }
type Admin = {
  readonly port: number
  readonly health: Health
  ask(
    path: string,
    options?: { method?: string; fields?: OutgoingHttpHeaders; body?: string; from?: string },
  ): Promise<Answer>
}

const metrics = createMetrics({
  policies: [],
  limitsEnabled: true,
  version: '1.2.3',
  readNode: watchProcess('sluice_'),
})
const log = createLog('gateway', 'silent')
const token = 'correct horse battery staple'.replaceAll(' ', '-')
const outsideAddress = Object.values(networkInterfaces())
  .flat()
  .find((entry) => entry?.family === 'IPv4' && !entry.internal)?.address
if (outsideAddress === undefined)
  console.log('This machine has loopback alone: no peer from outside asks the admin listener.')
let store: StoreState = 'available'
const closers: (() => void)[] = []

afterEach(() => {
  store = 'available'
  for (const close of closers.splice(0)) close()
})

async function startAdmin(changed: Partial<AdminDeps> = {}, host = '127.0.0.1'): Promise<Admin> {
  const health = createHealth({ storeState: () => store, upstreamState: () => metrics.upstreamState() })
  const readHealth = () => health.read()
  const handler = createAdminHandler({
    token: undefined,
    readHealth,
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot()]),
    apiRoutes: createApiRoutes({
      version: '1.2.3',
      limitsEnabled: true,
      rules: 6,
      readConfig: () => ({ hash: '0123456789ab', lastReadSucceeded: true }),
      workers: 1,
      uptimeMs: () => 61_999,
      readHealth,
    }),
    log,
    ...changed,
  })
  const server = createServer(adminServerOptions, handler)
  limitConnections(server, 256)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  closers.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo

  return {
    port,
    health,
    ask: (path, { method = 'GET', fields = {}, body, from = '127.0.0.1' } = {}) =>
      new Promise((resolve, reject) => {
        const sent = request({
          port,
          host,
          path,
          method,
          headers: fields,
          agent: false,
          ...(host === '127.0.0.1' && { localAddress: from }),
        })
        sent.on('error', reject)
        sent.on('response', (response) => {
          text(response).then((received) => {
            resolve({ status: response.statusCode ?? 0, fields: response.headers, body: received })
          }, reject)
        })
        sent.end(body)
      }),
  }
}

describe('health', () => {
  test('/livez is 200 while Redis is unavailable and the gateway stops', async () => {
    const admin = await startAdmin()
    store = 'unavailable'
    admin.health.beginStopping()
    const answer = await admin.ask('/livez')
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toEqual({ status: 'alive' })
  })

  test('/readyz is 503 before the start is over and while stopping, 200 between', async () => {
    const admin = await startAdmin()
    const starting = await admin.ask('/readyz')
    expect(starting.status).toBe(503)
    expect(JSON.parse(starting.body)).toMatchObject({ status: 'starting' })

    admin.health.markReady()
    const ready = await admin.ask('/readyz')
    expect(ready.status).toBe(200)
    expect(ready.fields['content-type']).toBe('application/json')
    expect(ready.fields['cache-control']).toBe('no-store')
    expect(JSON.parse(ready.body)).toEqual({ status: 'ready', store: 'available', upstream: 'unknown' })

    admin.health.beginStopping()
    admin.health.markReady()
    const stopping = await admin.ask('/readyz')
    expect(stopping.status).toBe(503)
    expect(JSON.parse(stopping.body)).toMatchObject({ status: 'stopping' })
  })

  test('an unavailable store is reported, and does not make the gateway unready', async () => {
    const admin = await startAdmin()
    admin.health.markReady()
    store = 'unavailable'
    const answer = await admin.ask('/readyz')
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ store: 'unavailable' })
  })

  test('the probes need no token, and any Host will do', async () => {
    const admin = await startAdmin({ token })
    admin.health.markReady()
    for (const path of ['/livez', '/readyz', '/livez?probe=1']) {
      expect((await admin.ask(path, { fields: { host: 'gateway.internal:9090' } })).status).toBe(200)
    }
  })
})

describe('metrics', () => {
  test('the metrics are Prometheus text', async () => {
    const admin = await startAdmin()
    const answer = await admin.ask('/metrics')
    expect(answer.status).toBe(200)
    expect(answer.fields['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(parseExposition(answer.body).value('sluice_build_info', { version: '1.2.3' })).toBe(1)
  })

  test('a failure to read them is a 500 in the one shape, and the next request is served', async () => {
    const admin = await startAdmin({
      readMetrics: () => Promise.reject(new Error('broken')),
      apiRoutes: new Map([
        [
          '/api/throw',
          {
            GET: () => {
              throw new Error('broken too')
            },
          },
        ],
      ]),
    })
    for (const path of ['/metrics', '/api/throw']) {
      const answer = await admin.ask(path)
      expect(answer.status).toBe(500)
      expect(answer.body).toBe('{"code":500,"error":"Internal error"}')
    }
    expect((await admin.ask('/livez')).status).toBe(200)
  })
})

describe('the operator’s interface', () => {
  test('GET /api/status', async () => {
    const admin = await startAdmin()
    admin.health.markReady()
    expect(JSON.parse((await admin.ask('/api/status')).body)).toEqual({
      version: '1.2.3',
      uptimeSeconds: 61,
      limitsEnabled: true,
      rules: 6,
      tableHash: '0123456789ab',
      lastReloadSuccessful: true,
      workers: 1,
      status: 'ready',
      store: 'available',
      upstream: 'unknown',
    })
  })

  test('the query of a request reaches its route', async () => {
    const admin = await startAdmin({
      apiRoutes: new Map([['/api/echo', { GET: (query: URLSearchParams) => Object.fromEntries(query) }]]),
    })
    expect((await admin.ask('/api/echo?policy=login&client=a%3Fb?c')).body).toBe(
      '{"policy":"login","client":"a?b?c"}',
    )
  })
})

describe('invalid requests', () => {
  test.each([
    '/page',
    '/health',
    '/livez/',
    '//livez',
    '/LIVEZ',
    '/metrics/x',
    '*',
    '/api',
    'http://x/livez',
  ])('%s is 404', async (path) => {
    const answer = await (await startAdmin()).ask(path, path === '*' ? { method: 'OPTIONS' } : {})
    expect(answer.status).toBe(404)
    expect(answer.body).toBe('{"code":404,"error":"Not found"}')
  })

  test('HEAD has the response of GET, without the body', async () => {
    const admin = await startAdmin()
    for (const path of ['/livez', '/metrics', '/api/status']) {
      const answer = await admin.ask(path, { method: 'HEAD' })
      expect(answer.status).toBe(200)
      expect(Number(answer.fields['content-length'])).toBeGreaterThan(10)
      expect(answer.body).toBe('')
    }
  })

  test.each(['POST', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH'])('%s is 405 with Allow', async (method) => {
    const admin = await startAdmin()
    for (const path of ['/livez', '/readyz', '/metrics', '/api/status']) {
      const answer = await admin.ask(path, { method })
      expect(answer.status).toBe(405)
      expect(answer.fields.allow).toBe('GET, HEAD')
      expect(answer.body).toBe('{"code":405,"error":"Method not allowed"}')
    }
  })

  test.each([{ 'content-length': '3' }, { 'transfer-encoding': 'chunked' }])(
    'a body (%o) is 413',
    async (fields) => {
      const answer = await (await startAdmin()).ask('/livez', { method: 'POST', fields, body: 'abc' })
      expect(answer.status).toBe(413)
      expect(answer.fields.connection).toBe('close')
      expect(JSON.parse(answer.body)).toMatchObject({ code: 413 })
    },
  )

  test('a head of more than 8 KiB is refused', async () => {
    const answer = await (await startAdmin()).ask('/livez', { fields: { 'x-long': 'a'.repeat(9000) } })
    expect(answer.status).toBe(431)
  })

  test('a client that sends requests without waiting for responses is answered up to 16 of them', async () => {
    const answering = Promise.withResolvers<undefined>()
    let asked = 0
    const admin = await startAdmin({
      async readHealth() {
        asked++
        await answering.promise
        return { status: 'ready', store: 'memory', upstream: 'unknown' }
      },
    })
    const ask = 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n'
    const patient = connect(admin.port, '127.0.0.1', () => patient.write(ask.repeat(16)))
    await eventually('each request asks', () => expect(asked).toBe(16))
    const flood = connect(admin.port, '127.0.0.1', () => flood.write(ask.repeat(5000)))
    await new Promise((resolve) => flood.on('error', () => undefined).once('close', resolve))
    expect(asked).toBe(32)
    answering.resolve(undefined)
    let received = ''
    patient.on('data', (piece) => (received += String(piece)))
    await eventually('each is answered', () => expect(received.match(/HTTP\/1.1 200 OK/g)).toHaveLength(16))
    patient.end(ask)
    await eventually('one more is answered', () =>
      expect(received.match(/HTTP\/1.1 200 OK/g)).toHaveLength(17),
    )
  })

  test('the admin listener still works after a garbled request and a reset', async () => {
    const admin = await startAdmin()
    await new Promise<void>((resolve) => {
      const socket = connect(admin.port, '127.0.0.1', () => socket.write('NOT HTTP\r\n\r\n'))
      socket.on('close', () => resolve()).resume()
    })
    await new Promise<void>((resolve) => {
      const socket = connect(admin.port, '127.0.0.1', () => {
        socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n', () => socket.resetAndDestroy())
      })
      socket.on('close', () => resolve()).on('error', () => undefined)
    })
    expect((await admin.ask('/livez')).status).toBe(200)
  })
})

describe('with a token', () => {
  const guarded = ['/metrics', '/api/status', '/api/no-such-thing']

  test.each([
    undefined,
    '',
    token,
    'Bearer',
    'Bearer ',
    `Bearer ${token}x`,
    `Bearer ${token.slice(1)}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token.toUpperCase()}`,
    `Basic ${token}`,
  ])('Authorization: %s is 401', async (authorization) => {
    const admin = await startAdmin({ token })
    for (const path of guarded) {
      const answer = await admin.ask(path, { fields: authorization === undefined ? {} : { authorization } })
      expect(answer.status).toBe(401)
      expect(answer.fields['www-authenticate']).toBe('Bearer')
      expect(answer.body).toBe('{"code":401,"error":"Missing or invalid bearer token"}')
    }
  })

  test('after ten wrong tokens further ones from an address get 429, and the right one still passes', async () => {
    const admin = await startAdmin({ token })
    const wrong = { fields: { authorization: 'Bearer guess' } }
    const right = { fields: { authorization: `Bearer ${token}` } }
    for (let scrape = 0; scrape < 12; scrape++) expect((await admin.ask('/metrics', right)).status).toBe(200)
    // Sent at the same time, like the guesses of an attacker.
    const answers = await Promise.all(Array.from({ length: 20 }, () => admin.ask('/metrics', wrong)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([
      ...Array.from({ length: 10 }, () => 401),
      ...Array.from({ length: 10 }, () => 429),
    ])
    const refused = await admin.ask('/metrics', wrong)
    expect(refused.status).toBe(429)
    expect(Number(refused.fields['retry-after'])).toBeGreaterThan(50)
    // Operators may share the address of a proxy with the attacker.
    for (const path of ['/metrics', '/api/status']) expect((await admin.ask(path, right)).status).toBe(200)
    expect((await admin.ask('/metrics', { ...wrong, from: '127.0.0.2' })).status).toBe(401)
  })

  test('a token in the query is not a token', async () => {
    const admin = await startAdmin({ token })
    expect((await admin.ask(`/metrics?token=${token}&access_token=${token}`)).status).toBe(401)
  })

  test.each([`Bearer ${token}`, `bearer ${token}`, `BEARER  ${token}`])(
    '%s may pass, from anywhere',
    async (given) => {
      const admin = await startAdmin({ token })
      const fields = { authorization: given, host: 'gateway.internal', origin: 'http://elsewhere' }
      expect((await admin.ask('/metrics', { fields })).status).toBe(200)
      expect((await admin.ask('/api/status', { fields })).status).toBe(200)
      expect((await admin.ask('/api/no-such-thing', { fields })).status).toBe(404)
    },
  )
})

/**
 * The attack: a web page that the operator visits makes the operator's own browser send requests to the admin listener on loopback. Either
 * directly: then the browser sends the page's `Origin` with everything except simple reads. Or by DNS rebinding: the page's own host name
 * resolves to 127.0.0.1, so that the browser treats the response as the page's own; then the browser still sends that name as `Host`.
 */
describe('without a token', () => {
  test.each([
    { host: 'evil.example' },
    { host: 'evil.example:9090' },
    { host: 'localhost.evil.example' },
    { host: '127.0.0.1.evil.example' },
    { host: '10.0.0.1' },
    { host: 'evil.example@127.0.0.1' },
    { host: 'localhost:9090:9090' },
    { host: 'localhost', origin: 'http://evil.example' },
    { host: 'localhost', origin: 'null' },
    { host: 'localhost:9090', origin: 'http://localhost' },
    { host: 'localhost', origin: 'https://localhost' },
  ])('%o is 403', async (fields) => {
    const admin = await startAdmin()
    for (const path of ['/metrics', '/api/status', '/api/no-such-thing']) {
      const answer = await admin.ask(path, { fields })
      expect(answer.status).toBe(403)
      expect(JSON.parse(answer.body)).toMatchObject({ code: 403 })
      expect(answer.fields['access-control-allow-origin']).toBeUndefined()
    }
  })

  test.each([
    { host: 'localhost' },
    { host: 'LocalHost:9090' },
    { host: '127.0.0.1:9090' },
    { host: '127.8.9.10' },
    { host: '[::1]:9090' },
    { host: 'localhost:9090', origin: 'http://localhost:9090' },
  ])('%o may pass', async (fields) => {
    const admin = await startAdmin()
    expect((await admin.ask('/metrics', { fields })).status).toBe(200)
    expect((await admin.ask('/api/status', { fields })).status).toBe(200)
  })

  // The gateway does not start with such settings. If that check ever failed, the listener itself would still answer nobody.
  test.skipIf(outsideAddress === undefined)('a peer from outside is 403, whatever its Host', async () => {
    const admin = await startAdmin({}, outsideAddress)
    expect((await admin.ask('/metrics', { fields: { host: 'localhost' } })).status).toBe(403)
    expect((await admin.ask('/livez')).status).toBe(200)
  })
})
