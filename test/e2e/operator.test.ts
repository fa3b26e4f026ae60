import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

const CONFIG_FILE = join(import.meta.dirname, 'operated.yaml')

async function start(env: Record<string, string> = {}): Promise<HostedGateway> {
  const backend = await startBackend()
  return startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE, ...env })
}

type Headers = Record<string, string>

/** The statuses of `times` concurrent requests. */
async function rush(
  gateway: Pick<HostedGateway, 'send'>,
  times: number,
  target: string,
  from: string,
  headers: Headers = {},
): Promise<number[]> {
  const [method = '', path = ''] = target.split(' ')
  const replies = Array.from({ length: times }, () => gateway.send(method, path, { from, headers }))
  return (await Promise.all(replies)).map(({ status }) => status)
}

function countOk(statuses: readonly number[]): number {
  return statuses.filter((status) => status === 200).length
}

let lastClient = 1
const newAddress = (): string => `127.0.0.${++lastClient}`

describe('one process', () => {
  let gateway: HostedGateway
  const ask = (method: string, path: string, body?: unknown, headers?: Headers) =>
    askOperator(gateway, method, path, body, headers)

  beforeAll(async () => {
    gateway = await start()
  })

  test('the interface returns the table of limits in use', async () => {
    const { status, body } = await ask('GET', '/api/limits')
    expect(status).toBe(200)
    expect(body).toMatchObject({ limitsEnabled: true })
    const { limits } = body as { limits: unknown[] }
    expect(limits).toHaveLength(4)
    expect(limits[2]).toEqual({
      name: 'by-key',
      match: ['GET /keyed'],
      except: ['GET /keyed/free'],
      key: ['header:x-api-key'],
      requests: 3,
      windowSeconds: 60,
      algorithm: 'fixed',
      mode: 'enforce',
      onStoreError: 'open',
    })
    expect(limits[3]).toMatchObject({ key: ['ip', 'header:x-api-key'], mode: 'shadow' })
  })

  test('the interface returns the state of a client, under one policy and under all that count it', async () => {
    const from = newAddress()
    await rush(gateway, 12, 'POST /login', from)
    const login = await ask('POST', '/api/clients/inspect', { policy: 'login', client: { ip: from } })
    expect(login.status).toBe(200)
    expect(login.body).toEqual({
      states: [
        {
          policy: 'login',
          client: { ip: from },
          limit: 30,
          windowSeconds: 900,
          mode: 'enforce',
          used: 12,
          remaining: 18,
          exceeded: false,
          resetSeconds: expect.any(Number) as number,
          source: 'store',
        },
      ],
    })
    expect((await ask('POST', '/api/clients/inspect', { client: from })).body).toMatchObject({
      states: [
        { policy: 'login', used: 12 },
        { policy: 'slides', used: 12, remaining: 28 },
      ],
    })
    const mapped = { policy: 'login', client: `::FFFF:${from}` }
    expect((await ask('POST', '/api/clients/inspect', mapped)).body).toMatchObject({ states: [{ used: 12 }] })
    expect(
      (await ask('POST', '/api/clients/inspect', { policy: 'login', client: newAddress() })).body,
    ).toMatchObject({ states: [{ used: 0, remaining: 30, exceeded: false, resetSeconds: null }] })
  })

  test('resets a client under one policy, and exactly the quota passes again', async () => {
    const from = newAddress()
    expect(countOk(await rush(gateway, 35, 'POST /login', from))).toBe(30)
    const reset = await ask('POST', '/api/clients/reset', { policy: 'login', client: { ip: from } })
    expect(reset).toMatchObject({ status: 200, body: { reset: ['login'], counted: ['login'] } })
    // The sliding rule was not reset, and has 10 requests left.
    expect(countOk(await rush(gateway, 35, 'POST /login', from))).toBe(10)
    const all = await ask('POST', '/api/clients/reset', { client: { ip: from } })
    expect(all.body).toEqual({ reset: ['login', 'slides'], counted: ['login', 'slides'] })
    expect(countOk(await rush(gateway, 35, 'POST /login', from))).toBe(30)
    const line = await gateway.waitForLine(/.*client reset by an operator.*/)
    expect(JSON.parse(line[0])).toMatchObject({
      level: 'info',
      client: from,
      policy: 'login',
      outcome: 'done',
    })
    const nobody = await ask('POST', '/api/clients/reset', { policy: 'login', client: newAddress() })
    expect(nobody).toMatchObject({ status: 200, body: { reset: ['login'], counted: [] } })
  })

  test('the interface finds clients by secret header values, which it never shows', async () => {
    const from = newAddress()
    const key = `s3cret-${from}`
    await rush(gateway, 5, 'GET /keyed', from, { 'x-api-key': key })
    const client = { 'header:X-API-Key': key }
    const inspect = async (asked: unknown) =>
      (await ask('POST', '/api/clients/inspect', { policy: 'by-key', client: asked })).body
    expect(await inspect(client)).toMatchObject({ states: [{ used: 3, remaining: 0, exceeded: true }] })
    expect(await inspect(key)).toMatchObject({ states: [{ used: 3 }] })

    const { body } = await ask('GET', '/api/clients/limited?policy=by-key')
    const [listed] = (body as { clients: { client: unknown }[] }).clients
    expect(listed).toMatchObject({ policy: 'by-key', refusals: 2 })
    expect(listed?.client).toEqual({ id: expect.stringMatching(/^h:[\w-]{22}$/) as string })
    expect(await inspect(listed?.client)).toMatchObject({ states: [{ used: 3 }] })
    await ask('POST', '/api/clients/reset', { policy: 'by-key', client: listed?.client })
    expect(await inspect(client)).toMatchObject({ states: [{ used: 0 }] })
    expect((await ask('GET', '/api/clients/limited?policy=by-key')).body).toMatchObject({ clients: [] })
    expect(gateway.output()).not.toContain('s3cret')

    await rush(gateway, 3, 'GET /both', from, { 'x-api-key': key })
    const both = { ip: from, 'header:x-api-key': key }
    expect(
      (await ask('POST', '/api/clients/inspect', { policy: 'by-both', client: both })).body,
    ).toMatchObject({ states: [{ used: 2, exceeded: true }] })
    const everywhere = await ask('POST', '/api/clients/reset', { client: both })
    expect(everywhere.body).toEqual({ counted: ['by-both'], reset: ['login', 'slides', 'by-key', 'by-both'] })
  })

  test('the interface lists the clients over a limit, the most refused first', async () => {
    const [often, seldom] = [newAddress(), newAddress()]
    await rush(gateway, 37, 'POST /login', seldom)
    await rush(gateway, 50, 'POST /login', often)
    const { body } = await ask('GET', '/api/clients/limited?policy=login&limit=2')
    expect(body).toMatchObject({
      scope: 'replica',
      clients: [
        { policy: 'login', client: { ip: often }, mode: 'enforce', refusals: 20 },
        { policy: 'login', client: { ip: seldom }, refusals: 7 },
      ],
    })
    const one = (await ask('GET', '/api/clients/limited?limit=1')).body
    expect((one as { clients: unknown[] }).clients).toHaveLength(1)
  })

  test.each([
    ['{"policy":"nobody","client":"192.0.2.1"}', 404],
    ['{"policy":"__proto__","client":"192.0.2.1"}', 404],
    ['{"policy":"login","client":"192.0.2.256"}', 400],
    ['{"policy":"login","client":"192.0.2.01"}', 400],
    ['{"policy":"login","client":"fe80::1%eth0"}', 400],
    ['{"policy":"login","client":"2001:db8::/63"}', 400],
    ['{"policy":"login","client":""}', 400],
    ['{"policy":"login","client":{"ip":"192.0.2.1","header:x-api-key":"a"}}', 400],
    ['{"policy":"by-both","client":{"ip":"192.0.2.1"}}', 400],
    ['{"policy":"by-key","client":{"header:x-api-key":""}}', 400],
    ['{"policy":"by-key","client":{"header:x-api-key":" a"}}', 400],
    ['{"policy":"by-key","client":{"header:x-api-key":"a\\nb"}}', 400],
    ['{"policy":"by-key","client":{"header:x-api-key":"a","Header:X-Api-Key":"b"}}', 400],
    ['{"policy":"by-key","client":{"header:__proto__":"a"}}', 400],
    ['{"policy":"by-key","client":{"__proto__":"a"}}', 400],
    ['{"policy":"by-key","client":{"id":"127.0.0.1"}}', 400],
    ['{"policy":"login","client":{"id":"h:0123456789012345678901"}}', 400],
    ['{"policy":"by-key","client":{"id":"h:0123456789012345678901}:x"}}', 400],
    ['{"policy":"login","client":{}}', 400],
    ['{"policy":"login","client":["192.0.2.1"]}', 400],
    ['{"policy":"login","client":null}', 400],
    ['{"policy":7,"client":"192.0.2.1"}', 400],
    ['{"policy":"login","client":"192.0.2.1","and":1}', 400],
    ['{"policy":"login"}', 400],
    ['[]', 400],
    ['"x"', 400],
    ['null', 400],
    ['{', 400],
    ['', 400],
  ])('%s is answered in the one shape', async (body, status) => {
    for (const path of ['/api/clients/inspect', '/api/clients/reset']) {
      const reply = await ask('POST', path, body)
      expect(reply.status).toBe(status)
      expect(reply.body).toEqual({ code: status, error: expect.any(String) as string })
    }
  })

  test('a body that is far too long is 413', async () => {
    const reply = await ask('POST', '/api/clients/reset', `{"client":"${'1'.repeat(17_000)}"}`)
    expect(reply).toMatchObject({ status: 413, body: { code: 413 }, headers: { connection: 'close' } })
  })

  test('a list for an unknown policy, or of too many clients, is an error', async () => {
    expect((await ask('GET', '/api/clients/limited?policy=nobody')).status).toBe(404)
    for (const limit of ['0', '-1', '1001', '1e3', 'x', ''])
      expect((await ask('GET', `/api/clients/limited?limit=${limit}`)).status, limit).toBe(400)
  })

  test('other methods are answered 405 with Allow', async () => {
    const methods = { '/api/limits': 'GET, HEAD', '/api/clients/limited': 'GET, HEAD' }
    for (const [path, allow] of Object.entries(methods)) {
      for (const method of ['DELETE', 'OPTIONS', 'PUT']) {
        expect(await ask(method, path)).toMatchObject({ status: 405, headers: { allow } })
      }
      expect(await ask('HEAD', path)).toMatchObject({ status: 200, body: undefined })
    }
    for (const path of ['/api/clients/inspect', '/api/clients/reset']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE'])
        expect(await ask(method, path)).toMatchObject({ status: 405, headers: { allow: 'POST' } })
      expect(await ask('PUT', path, '{}')).toMatchObject({ status: 405, headers: { allow: 'POST' } })
    }
  })

  /**
   * The attack: a web page in the operator's browser resets a client with a form or a fetch that needs no preflight: from another site,
   * from another port of this machine, or under a name that the attacker lets resolve to loopback.
   */
  test.each([
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': 'text/plain; application/json' },
    { 'content-type': '' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { host: 'evil.example' },
  ])('a web page is refused (%o)', async (headers) => {
    const from = newAddress()
    await rush(gateway, 2, 'POST /login', from)
    const question = { policy: 'login', client: from }
    const reply = await ask('POST', '/api/clients/reset', question, headers)
    expect(reply.status).toBe('content-type' in headers ? 415 : 403)
    expect(reply.headers['access-control-allow-origin']).toBeUndefined()
    expect((await ask('POST', '/api/clients/inspect', question)).body).toMatchObject({
      states: [{ used: 2 }],
    })
  })

  test('resets are counted in a metric', async () => {
    const value = async (): Promise<number> => {
      const { body } = await gateway.send('GET', '/').then(async () => {
        const { send } = await import('../support/gateway/gateway.ts')
        return send(gateway.adminPort, 'GET', '/metrics')
      })
      return Number(/^sluice_resets_total (\d+)$/m.exec(body)?.[1])
    }
    const before = await value()
    await ask('POST', '/api/clients/reset', { policy: 'login', client: newAddress() })
    expect(await value()).toBe(before + 1)
  })
})

test('the token is needed, and enough', async () => {
  const token = 'a-token-of-an-operator'
  const gateway = await start({ ADMIN_TOKEN: token })
  const question = { policy: 'login', client: '192.0.2.1' }
  for (const headers of [{}, { authorization: 'Bearer other' }]) {
    expect(await askOperator(gateway, 'POST', '/api/clients/reset', question, headers)).toMatchObject({
      status: 401,
      body: { code: 401 },
    })
  }
  const headers = { authorization: `Bearer ${token}` }
  expect(await askOperator(gateway, 'POST', '/api/clients/reset', question, headers)).toMatchObject({
    status: 200,
  })
})

test('with limits switched off, the API lists no limits', async () => {
  const gateway = await start({ RATE_LIMITING_DISABLED: '1' })
  expect((await askOperator(gateway, 'GET', '/api/limits')).body).toEqual({
    limitsEnabled: false,
    limits: [],
  })
  const question = { policy: 'login', client: '192.0.2.1' }
  expect((await askOperator(gateway, 'POST', '/api/clients/reset', question)).status).toBe(404)
})

describe('several gateways or workers', () => {
  test('three replicas on Redis serve a client again after its reset on one', async () => {
    const redis = await startRedisServer()
    const replicas = await Promise.all(
      [1, 2, 3].map(() => start({ REDIS_URL: redis.url, STORE_TIMEOUT: '500ms' })),
    )
    const [first] = replicas as [HostedGateway]
    const from = newAddress()
    for (const replica of replicas) await rush(replica, 35, 'POST /login', from)
    for (const replica of replicas) expect(countOk(await rush(replica, 5, 'POST /login', from))).toBe(0)

    const question = { policy: 'login', client: { ip: from } }
    expect((await askOperator(first, 'POST', '/api/clients/inspect', question)).body).toMatchObject({
      states: [{ used: 30, exceeded: true, source: 'store' }],
    })
    await askOperator(first, 'POST', '/api/clients/reset', { client: from })
    let allowed = 0
    for (const replica of replicas) {
      await eventually('the replica has heard of the reset', async () =>
        expect(countOk(await rush(replica, 1, 'POST /login', from))).toBe(1),
      )
      allowed += 1
    }
    const rest = await Promise.all(replicas.map((replica) => rush(replica, 20, 'POST /login', from)))
    expect(allowed + countOk(rest.flat())).toBe(30)

    // Each gateway knows the clients that the others refuse.
    const other = newAddress()
    await rush(first, 33, 'POST /login', other)
    const last = replicas[2] as HostedGateway
    await rush(last, 5, 'POST /login', other)
    const about = `/api/clients/limited?policy=login&limit=1000`
    await eventually('the last replica lists what the first has refused', async () => {
      const { body } = await askOperator(last, 'GET', about)
      expect(body).toMatchObject({ scope: 'all' })
      const { clients } = body as { clients: { client: object; refusals: number }[] }
      expect(clients.find(({ client }) => 'ip' in client && client.ip === other)?.refusals).toBe(8)
    })
    expect((await askOperator(last, 'GET', '/api/replicas')).body).toMatchObject({
      scope: 'all',
      replicas: [
        { self: true, status: 'ready', workers: 1 },
        { self: false, status: 'ready', workers: 1 },
        { self: false, status: 'ready', workers: 1 },
      ],
    })
    await askOperator(first, 'POST', '/api/clients/reset', { client: other })
    await eventually('the client that was reset is listed no more', async () => {
      const { body } = await askOperator(last, 'GET', about)
      const { clients } = body as { clients: { client: object }[] }
      expect(clients.map(({ client }) => client)).not.toContainEqual({ ip: other })
    })

    await redis.signal('SIGSTOP')
    await rush(first, 5, 'POST /login', newAddress())
    await eventually('it counts in the process', async () => {
      const client = newAddress()
      await rush(first, 1, 'POST /login', client)
      const { body } = await askOperator(first, 'POST', '/api/clients/inspect', {
        policy: 'login',
        client,
      })
      expect(body).toMatchObject({ states: [{ used: 1, source: 'local' }] })
    })
    // A reset that is sent to probe whether Redis is back has no confirmation.
    await eventually('a reset says that Redis is away', async () =>
      expect(await askOperator(first, 'POST', '/api/clients/reset', question)).toMatchObject({
        status: 503,
        body: { code: 503, error: 'Redis is not available: nothing was reset' },
      }),
    )
    const keyed = { policy: 'by-key', client: 'any' }
    expect((await askOperator(first, 'POST', '/api/clients/inspect', keyed)).body).toMatchObject({
      states: [{ used: null, remaining: null, exceeded: null, source: 'none' }],
    })
    expect((await askOperator(first, 'GET', '/api/clients/limited')).body).toMatchObject({
      scope: 'replica',
    })
    expect((await askOperator(first, 'GET', '/api/replicas')).body).toEqual({
      scope: 'replica',
      replicas: [],
    })
    await redis.signal('SIGCONT')
  })

  test.each(['without Redis', 'on Redis'])('workers %s answer as one', async (where) => {
    const env = where === 'on Redis' ? { REDIS_URL: (await startRedisServer()).url } : {}
    const gateway = await start({ ...env, WORKERS: '2', STORE_TIMEOUT: '5s' })
    const from = newAddress()
    expect(countOk(await rush(gateway, 60, 'POST /login', from))).toBe(30)
    const question = { policy: 'login', client: from }
    expect((await askOperator(gateway, 'POST', '/api/clients/inspect', question)).body).toMatchObject({
      states: [{ used: 30, remaining: 0, exceeded: true, source: 'store' }],
    })
    expect((await askOperator(gateway, 'GET', '/api/clients/limited')).body).toMatchObject({
      clients: [{ policy: 'login', client: { ip: from }, refusals: 30 }],
    })
    const reset = await askOperator(gateway, 'POST', '/api/clients/reset', { client: from })
    expect(reset).toMatchObject({ status: 200, body: { reset: ['login', 'slides'] } })
    await eventually('no client is over a limit', async () =>
      expect((await askOperator(gateway, 'GET', '/api/clients/limited')).body).toMatchObject({
        scope: where === 'on Redis' ? 'all' : 'replica',
        clients: [],
      }),
    )
    if (where === 'on Redis')
      await eventually('both workers are told of', async () =>
        expect((await askOperator(gateway, 'GET', '/api/replicas')).body).toMatchObject({
          replicas: [{ self: true, workers: 2 }],
        }),
      )
    expect(countOk(await rush(gateway, 60, 'POST /login', from))).toBe(30)
    expect(gateway.output().match(/client reset by an operator/g)).toHaveLength(1)
  })
})
