import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Redis } from 'ioredis'
import { WebSocket } from 'ws'
import { tlsSettings } from '../support/network/certificates.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshAddress } from '../support/http/raw-client.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { freshRedis } from '../support/redis/redis.ts'

const CONFIG_FILE = 'test/e2e/client-lists.yaml'
const [allowed, denied, allowedToSearch] = ['127.0.0.2', '127.0.0.3', '127.0.0.5']
const forbidden = '{"code":403,"error":"Forbidden"}'

let backend: RecordingBackend

beforeAll(async () => {
  backend = await startRecordingBackend()
})

afterAll(() => backend.close())

/** The statuses of `times` requests, one after another. */
async function ask(
  gateway: HostedGateway,
  times: number,
  target: string,
  from: string,
  headers: Record<string, string> = {},
): Promise<number[]> {
  const [method = '', path = ''] = target.split(' ')
  const statuses: number[] = []
  for (let sent = 0; sent < times; sent++)
    statuses.push((await gateway.send(method, path, { from, headers })).status)
  return statuses
}

describe.each(['memory', 'redis', 'workers'])('client lists, counters in %s', (store) => {
  let gateway: HostedGateway
  let redisUrl: string | undefined

  beforeAll(async () => {
    redisUrl = store === 'redis' ? await freshRedis() : undefined
    gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE,
      TRUSTED_PROXIES: '127.0.0.9',
      ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
      ...(store === 'workers' && { WORKERS: '2' }),
    })
  })

  test('an allowed client passes without a count, and without RateLimit headers', async () => {
    expect(new Set(await ask(gateway, 8, 'POST /login', allowed))).toEqual(new Set([200]))
    const { headers } = await gateway.send('POST', '/login', { from: allowed })
    expect(Object.keys(headers).filter((name) => name.startsWith('ratelimit'))).toEqual([])
    const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', { client: { ip: allowed } })
    expect(body).toMatchObject({ states: [{ used: 0 }, { used: 0 }, { used: 0 }] })
  })

  test('a client on no list is limited as before', async () => {
    const from = freshAddress()
    expect(await ask(gateway, 3, 'POST /login', from)).toEqual([200, 200, 429])
  })

  test('lists check the client that a trusted proxy names, not the proxy', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.7' }
    expect(new Set(await ask(gateway, 6, 'POST /login', '127.0.0.9', headers))).toEqual(new Set([200]))
    const mapped = { 'x-forwarded-for': '::ffff:c633:6407' }
    expect(new Set(await ask(gateway, 6, 'POST /login', '127.0.0.9', mapped))).toEqual(new Set([200]))
    const nat64 = { 'x-forwarded-for': '64:ff9b::c633:6407' }
    expect(new Set(await ask(gateway, 6, 'POST /login', '127.0.0.9', nat64))).toEqual(new Set([200]))
    // The header has no effect if it does not come from a trusted proxy.
    expect(await ask(gateway, 3, 'POST /login', freshAddress(), headers)).toEqual([200, 200, 429])
  })

  test('the right secret passes, and another one does not', async () => {
    const from = freshAddress()
    const token = { 'X-Probe-Token': 'let-me-in' }
    expect(new Set(await ask(gateway, 6, 'POST /login', from, token))).toEqual(new Set([200]))
    expect(await ask(gateway, 3, 'POST /login', from, { 'x-probe-token': 'wrong' })).toEqual([200, 200, 429])
    expect(await ask(gateway, 1, 'POST /login', from, token)).toEqual([200])
  })

  test('a client allowed by one rule is counted by the others', async () => {
    expect(await ask(gateway, 5, 'GET /search', allowedToSearch)).toEqual([200, 200, 200, 200, 429])
  })

  test('a denied client gets 403, and the backend sees nothing', async () => {
    const before = backend.requestsFrom(denied).length
    const reply = await gateway.send('POST', '/login', { from: denied, body: 'x=1' })
    expect(reply).toMatchObject({ status: 403, body: forbidden })
    expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' })
    expect(await ask(gateway, 3, 'GET /not-limited/by-name', denied)).toEqual([403, 403, 403])
    expect(backend.requestsFrom(denied)).toHaveLength(before)
  })

  test('a stolen key is refused from any address, beside a good one too', async () => {
    const from = freshAddress()
    expect(await ask(gateway, 1, 'GET /a', from, { 'x-api-key': 'stolen' })).toEqual([403])
    expect(await ask(gateway, 1, 'GET /a', from, { 'x-api-key': 'good' })).toEqual([200])
    // The stolen key is refused even together with the secret of the allowList.
    const token = { 'x-api-key': 'stolen', 'x-probe-token': 'let-me-in' }
    expect(await ask(gateway, 1, 'GET /a', from, token)).toEqual([403])
  })

  test('a handshake for a WebSocket is refused too', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/chat`, { localAddress: denied })
    socket.on('error', () => undefined)
    const status = await new Promise((resolve) =>
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode)),
    )
    expect(status).toBe(403)
  })

  test('listed clients have no entry in the store', async () => {
    if (redisUrl === undefined) return
    const redis = new Redis(redisUrl)
    const keys = await redis.keys('*')
    expect(keys.length).toBeGreaterThan(0)
    expect(keys.filter((key) => key.includes(allowed) || key.includes(denied))).toEqual([])
    redis.disconnect()
  })
})

test('with limiting off nobody is limited, and denied clients stay denied', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE, RATE_LIMITING_DISABLED: '1' })
  expect(await ask(gateway, 3, 'POST /login', freshAddress())).toEqual([200, 200, 200])
  expect(await ask(gateway, 1, 'POST /login', denied)).toEqual([403])
})

test('lists apply over HTTP/2 as over HTTP/1.1', async () => {
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE, ...tlsSettings() })
  const statuses: (number | undefined)[] = []
  const session = connectHttp2(gateway.port)
  for (const token of ['let-me-in', 'let-me-in', 'let-me-in', 'wrong', 'wrong', 'wrong']) {
    const { status } = await sendHttp2(session, {
      ':method': 'POST',
      ':path': '/login',
      'x-probe-token': token,
    })
    statuses.push(status)
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  const { status, body } = await sendHttp2(session, { ':path': '/a', 'x-api-key': ['good', 'stolen'] })
  expect({ status, body }).toEqual({ status: 403, body: forbidden })
})

test("metrics, the access log and the operators' interface name the list that decided, and no secret", async () => {
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE, ACCESS_LOG: '1' })
  await ask(gateway, 3, 'POST /login', freshAddress(), { 'x-probe-token': 'let-me-in' })
  await ask(gateway, 2, 'GET /search', allowedToSearch)
  await ask(gateway, 4, 'GET /a', freshAddress(), { 'x-api-key': 'stolen' })
  await ask(gateway, 1, 'GET /last', freshAddress())
  const [denial] = await gateway.waitForLine(/^.*"status":403.*$/)
  expect(JSON.parse(denial)).toMatchObject({ list: 'deny', path: '/a' })
  const [pass] = await gateway.waitForLine(/^.*"path":"\/login".*$/)
  expect(JSON.parse(pass)).toMatchObject({ list: 'allow', status: 200 })
  const [last] = await gateway.waitForLine(/^.*"path":"\/last".*$/)
  expect(JSON.parse(last)).not.toHaveProperty('list')
  const { body: metrics } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(metrics).toContain('sluice_listed_requests_total{list="allow"} 5')
  expect(metrics).toContain('sluice_listed_requests_total{list="deny"} 4')
  const { body } = await askOperator(gateway, 'GET', '/api/limits')
  expect(JSON.stringify(body)).toContain('"allowList":[{"ip":["127.0.0.5"]}]')
  expect(gateway.output() + JSON.stringify(body)).not.toMatch(/let-me-in|stolen/)
})
