import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import type { Reply } from '../support/gateway/gateway.ts'
import { askEachWorker } from '../support/gateway/each-worker.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { atSomePace } from '../support/limiter/paces.ts'
import { eventually } from '../support/wait/eventually.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const table = `
allowList:
  - header: { x-probe-token: 'sha256:${sha256('probe')}' }
limits:
  - name: login
    match: POST /login
    requests: 5
    window: 15m
    ban: { after: 3, for: 1h, max: 24h, scope: all }
  - name: search
    match: GET /search
    requests: 1
    window: 15m
    ban: { after: 2, for: 1s, max: 3s }
  - name: api
    match: '* /api/*'
    key: header:x-api-key
    requests: 2
    window: 15m
    overrides:
      - { clients: [{ 'header:x-api-key': 'sha256:${sha256('gold')}' }], requests: 4, label: Gold Ltd }
  - name: keyed
    match: '* /keyed/*'
    key: header:x-api-key
    requests: 1000
    window: 15m
  - name: bucket
    match: GET /bucket
    algorithm: token-bucket
    requests: 2
    window: 1h
    burst: 4
  - name: chat
    match: POST /chat
    requests: 100
    window: 15m
    cost: { reserve: 10, settle: 'header:x-cost' }
  - name: trial
    match: GET /trial
    requests: 1
    window: 15m
    mode: shadow
    ban: { after: 1, for: 1h }
`

let lastClient = 10
const newAddress = (): string => `127.0.${Math.trunc(++lastClient / 250)}.${(lastClient % 250) + 1}`

describe.each(['memory', 'workers', 'Redis', 'Redis and workers'] as const)('in %s', (place) => {
  let gateways: readonly HostedGateway[]
  let logins = 0
  let alone: Record<string, string>
  const usesRedis = place.startsWith('Redis')
  const replicas = { memory: 1, workers: 1, Redis: 3, 'Redis and workers': 1 }[place]
  const workers = place.endsWith('workers') ? 2 : 1
  const at = (index: number): HostedGateway => {
    const gateway = gateways[index % gateways.length]
    if (!gateway) throw new RangeError('at least one gateway')
    return gateway
  }
  const ask = async (path: string, body?: unknown, index = 0) =>
    askOperator(at(index), body === undefined ? 'GET' : 'POST', path, body)
  const login = (from: string, index = 0): Promise<Reply> => at(index).send('POST', '/login', { from })
  const statuses = async (times: number, send: (index: number) => Promise<Reply>): Promise<number[]> => {
    const all: number[] = []
    for (let index = 0; index < times; index++) all.push((await send(index)).status)
    return all
  }
  /** Sends a request to each process of each gateway. */
  const ofEach = async (method: string, path: string, from: () => string): Promise<Reply[]> => {
    const replies: Reply[] = []
    for (const { output, send } of gateways)
      replies.push(...(await askEachWorker(output, workers, () => send(method, path, { from: from() }))))
    return replies
  }
  const isBanned = async (from: string): Promise<void> => {
    for (const { status } of await ofEach('GET', '/elsewhere', () => from)) expect(status).toBe(429)
  }

  beforeAll(async () => {
    const backend = await startBackend((request, response) => {
      if (request.url === '/login') logins += 1
      response.writeHead(200, request.url === '/chat' ? { 'x-cost': '10' } : {}).end()
    })
    alone = {
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(table),
      ...(usesRedis && { REDIS_URL: await freshRedis() }),
    }
    const env = { ...alone, ...(workers > 1 && { WORKERS: String(workers) }) }
    gateways = await Promise.all(Array.from({ length: replicas }, () => startHosted(env)))
  })

  test('a client that is refused too often is banned from everything, by each replica', async () => {
    const from = newAddress()
    expect(await statuses(5, (index) => login(from, index))).toEqual([200, 200, 200, 200, 200])
    expect((await at(1).send('GET', '/elsewhere', { from })).status).toBe(200)
    expect(await statuses(2, (index) => login(from, index))).toEqual([429, 429])
    expect((await at(1).send('GET', '/elsewhere', { from })).status).toBe(200)
    expect((await login(from)).status).toBe(429)
    const seenBefore = logins
    await eventually('each replica bans the client', () => isBanned(from))
    const { status, headers, body } = await at(2).send('GET', '/elsewhere', { from })
    expect([status, body]).toEqual([
      429,
      '{"code":429,"error":"Too many requests, Please try after a while!"}',
    ])
    expect(Number(headers['retry-after'])).toBeGreaterThan(3500)
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(3600)
    expect(headers).not.toHaveProperty('ratelimit')
    expect((await login(from, 1)).status).toBe(429)
    expect(logins).toBe(seenBefore)
    // A client on the allowList still passes from the same address.
    const probe = { from, headers: { 'x-probe-token': 'probe' } }
    expect((await at(0).send('GET', '/elsewhere', probe)).status).toBe(200)
    await eventually('the other replica lists the ban', async () => {
      const { body: list } = await ask('/api/bans', undefined, 1)
      expect(list).toMatchObject({
        bans: expect.arrayContaining([
          {
            client: { ip: from },
            policy: null,
            by: 'rule',
            times: 1,
            expiresSeconds: expect.any(Number) as unknown,
          },
        ]) as unknown,
      })
    })
    // Another client is not affected.
    expect((await login(newAddress())).status).toBe(200)
  })

  test('an operator bans, by address and by a secret header, and lifts the ban', async () => {
    const from = newAddress()
    const key = `key-${from}`
    const banned = await ask('/api/clients/ban', { client: { ip: from }, for: '1h', reason: 'scraping' })
    expect([banned.status, banned.body]).toEqual([
      200,
      {
        banned: [
          { client: { ip: from }, policy: null, expiresSeconds: 3600, by: 'operator', reason: 'scraping' },
        ],
      },
    ])
    await eventually('each replica bans the client', () => isBanned(from))
    const lifted = await ask('/api/clients/unban', { client: { ip: from } }, 1)
    expect(lifted.body).toMatchObject({ unbanned: [{ client: { ip: from } }] })
    await eventually('no replica bans the client', async () => {
      for (const { status } of await ofEach('GET', '/elsewhere', () => from)) expect(status).toBe(200)
    })
    expect((await ask('/api/clients/unban', { client: { ip: from } })).body).toEqual({ unbanned: [] })

    // From an address that was never banned, as the connection may go to a worker that does not know yet that the ban is lifted.
    const options = { from: newAddress(), headers: { 'x-api-key': key } }
    const api = (path: string) => at(0).send('GET', path, options)
    expect((await api('/keyed/a')).status).toBe(200)
    await ask('/api/clients/ban', { client: { 'header:x-api-key': key }, for: '1h' })
    await eventually('the key is banned', async () => expect((await api('/keyed/a')).status).toBe(429))
    // Rules that do not count by the key cannot identify the client.
    expect((await api('/elsewhere')).status).toBe(200)
    const { id } = await eventually('the ban of the key is told', async () => {
      const { body } = await ask('/api/clients/inspect', {
        policy: 'keyed',
        client: { 'header:x-api-key': key },
      })
      const [state] = (body as { states: { client: { id: string }; bannedSeconds: number }[] }).states
      expect(state?.bannedSeconds).toBeGreaterThan(3500)
      return { id: state?.client.id }
    })
    await ask('/api/clients/unban', { client: { id } })
    await eventually('the ban of the key is lifted', async () =>
      expect((await api('/keyed/a')).status).toBe(200),
    )
  })

  if (place === 'Redis')
    test('a ban set on one replica is enforced by the others', async () => {
      const from = newAddress()
      const elsewhere = (index: number): Promise<Reply> => at(index).send('GET', '/elsewhere', { from })
      expect(await statuses(3, elsewhere)).toEqual([200, 200, 200])
      await ask('/api/clients/ban', { client: { ip: from }, for: '1h' })
      for (const index of [1, 2])
        await eventually('the other replica bans the client', async () =>
          expect((await elsewhere(index)).status).toBe(429),
        )
    })

  test('an operator bans under one rule', async () => {
    const from = newAddress()
    await ask('/api/clients/ban', { client: from, policy: 'search', for: '90s' })
    const search = (): Promise<Reply> => at(0).send('GET', '/search', { from })
    // The rule's own ban, of a second, may be added meanwhile: the longer ban stays.
    await eventually('the ban under the rule is the one that lasts longest', async () => {
      const waits = await Promise.all(Array.from({ length: 6 }, search))
      for (const { headers } of waits) expect(Number(headers['retry-after'])).toBeGreaterThan(60)
      for (const { headers } of waits) expect(Number(headers['retry-after'])).toBeLessThanOrEqual(90)
    })
    expect((await search()).headers['ratelimit']).toMatch(/^"search";r=0;t=/)
    expect((await at(0).send('GET', '/elsewhere', { from })).status).toBe(200)
  })

  test('an operator gives a client another limit, which its counts go on under, and takes it back', async () => {
    const from = newAddress()
    const client = { 'header:x-api-key': `more-${from}` }
    const api = (): Promise<Reply> =>
      at(0).send('GET', '/api/a', { from, headers: { 'x-api-key': `more-${from}` } })
    expect(await statuses(3, api)).toEqual([200, 200, 429])
    const set = await ask('/api/clients/override', {
      policy: 'api',
      client,
      requests: 5,
      for: '1d',
      label: 'Acme',
    })
    expect(set.body).toMatchObject({ override: { policy: 'api', requests: 5, label: 'Acme' } })
    // No client is over a limit that has just been set until its next request.
    const { body: inspected } = await ask('/api/clients/inspect', { policy: 'api', client })
    const [{ client: named }] = (inspected as { states: [{ client: { id: string } }] }).states
    await eventually('the client is over no limit', async () => {
      const limited = await ask('/api/clients/limited?policy=api')
      expect(JSON.stringify(limited.body)).not.toContain(named.id)
    })
    await eventually('the other limit lets a request pass', async () =>
      expect((await api()).status).toBe(200),
    )
    await eventually('the other limit is used up', async () => {
      expect(await statuses(6, api)).toContain(429)
      expect((await api()).headers['ratelimit-policy']).toContain('"api";q=5')
    })
    // Every process knows the new limit within a second.
    await eventually('each process knows the other limit', async () => {
      const { body } = await ask('/api/clients/inspect', { policy: 'api', client })
      expect(body).toMatchObject({
        states: [{ label: 'Acme', limit: 5, used: 5, remaining: 0, exceeded: true }],
      })
      const limited = await ask('/api/clients/limited?policy=api')
      expect(JSON.stringify(limited.body)).toContain('"label":"Acme"')
      const { body: list } = await ask('/api/overrides', undefined, 1)
      expect(list).toMatchObject({
        overrides: expect.arrayContaining([
          expect.objectContaining({ policy: 'api', requests: 5, label: 'Acme' }),
        ]) as unknown,
      })
    })
    expect((await ask('/api/clients/override/remove', { policy: 'api', client })).body).toEqual({
      removed: true,
    })
    expect((await ask('/api/clients/override/remove', { policy: 'api', client })).body).toEqual({
      removed: false,
    })
    await eventually('the limit is that of the table again', async () =>
      expect((await api()).headers['ratelimit-policy']).toContain('"api";q=2'),
    )
  })

  test('an override at run time holds for token buckets, for costs, and for clients with one in the table', async () => {
    const from = newAddress()
    const set = (policy: string, client: object, requests: number) =>
      ask('/api/clients/override', { policy, client, requests, for: '1h' })
    await set('bucket', { ip: from }, 6)
    await set('chat', { ip: from }, 30)
    await set('api', { 'header:x-api-key': 'gold' }, 6)
    await eventually('the other limits are listed', async () => {
      const { body } = await ask('/api/overrides', undefined, 2)
      expect((body as { total: number }).total).toBeGreaterThanOrEqual(3)
    })
    for (const { headers } of await ofEach('POST', '/chat', newAddress))
      expect(headers['ratelimit-policy']).toContain('q=100')
    // Each process receives changes in order: one that knows the last change knows them all.
    const later = newAddress()
    await set('search', { ip: later }, 99)
    await eventually('each process knows of the last change', async () => {
      for (const { headers } of await ofEach('GET', '/search', () => later))
        expect(headers['ratelimit-policy']).toContain('q=99')
    })
    const passed = async (method: string, path: string, headers = {}): Promise<number> =>
      (await statuses(12, (index) => at(index).send(method, path, { from, headers }))).filter(
        (s) => s === 200,
      ).length
    expect(await passed('GET', '/bucket')).toBe(6)
    expect(await passed('POST', '/chat')).toBe(3)
    expect(await passed('GET', '/api/a', { 'x-api-key': 'gold' })).toBe(6)
    const limited = await ask('/api/clients/limited?policy=api')
    expect(JSON.stringify(limited.body)).toContain('"label":"Gold Ltd"')
  })

  test('a rule in shadow bans nobody', async () => {
    const from = newAddress()
    await statuses(5, () => at(0).send('GET', '/trial', { from }))
    expect((await at(0).send('GET', '/trial', { from })).status).toBe(200)
    const { body } = await ask('/api/bans')
    expect(JSON.stringify(body)).not.toContain(`"${from}"`)
  })

  if (usesRedis)
    test('a gateway that starts later knows bans and limits from its first request on', async () => {
      const from = newAddress()
      await ask('/api/clients/ban', { client: { ip: from }, for: '1h' })
      const other = newAddress()
      const override = { policy: 'search', client: { ip: other }, requests: 9, for: '1h' }
      await ask('/api/clients/override', override)
      const later = await startHosted(alone)
      expect((await later.send('GET', '/elsewhere', { from })).status).toBe(429)
      expect((await later.send('GET', '/search', { from: other })).headers['ratelimit-policy']).toContain(
        'q=9',
      )
    })
})

type Ban = {
  readonly client: { readonly ip?: string }
  readonly times: number
  readonly expiresSeconds: number
}

const pacedTable = `limits:
${[1, 4, 16]
  .map(
    (pace) =>
      `  - { name: at-${pace}, match: GET /at-${pace}, requests: 1, window: 15m, ban: { after: 2, for: ${pace}s, max: ${3 * pace}s } }\n`,
  )
  .join('')}`

// Concurrent, as these tests mostly wait.
describe.concurrent.each(['memory', 'Redis'])('in %s', (place) => {
  test('each consecutive ban is twice as long, up to max; other clients are not banned', async () => {
    const backend = await startBackend()
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(pacedTable),
      ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
    })
    await atSomePace(async (pace) => {
      const from = newAddress()
      const ask = (): Promise<Reply> => gateway.send('GET', `/at-${pace}`, { from })
      expect((await ask()).status).toBe(200)
      const lengths: number[] = []
      for (let ban = 1; ban <= 3; ban++) {
        // Sends requests until the client is banned again: refusals are not counted in the first two seconds after a ban.
        const found = await eventually(
          `ban ${ban} of the client`,
          async () => {
            expect((await ask()).status).toBe(429)
            const { bans } = (await askOperator(gateway, 'GET', '/api/bans')).body as { bans: Ban[] }
            return bans.find(({ client, times }) => client.ip === from && times === ban) ?? false
          },
          { endMs: 8_000 * pace },
        )
        lengths.push(Math.ceil(found.expiresSeconds / pace))
        expect((await gateway.send('GET', '/elsewhere', { from })).status).toBe(200)
      }
      expect(lengths).toEqual([1, 2, 3])
    })
  }, 300_000)
})

describe('mistyped input of an operator', () => {
  let gateway: HostedGateway
  beforeAll(async () => {
    const backend = await startBackend()
    gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table) })
  })

  test.each([
    ['ban', { client: { ip: '192.0.2.7' } }, 400],
    ['ban', { client: { ip: '192.0.2.7' }, for: 60 }, 400],
    ['ban', { client: { ip: '192.0.2.7' }, for: '0s' }, 400],
    ['ban', { client: { ip: '192.0.2.7' }, for: '366d' }, 400],
    ['ban', { client: { ip: '192.0.2.999' }, for: '1h' }, 400],
    ['ban', { client: { global: true }, for: '1h' }, 400],
    ['ban', { client: { 'header:x-other': 'x' }, for: '1h' }, 400],
    ['ban', { client: { ip: '192.0.2.7' }, for: '1h', policy: 'none' }, 404],
    ['ban', { client: { ip: '192.0.2.7' }, for: '1h', policy: 7 }, 404],
    ['ban', { client: { ip: '192.0.2.7' }, for: '1h', scope: 'all' }, 400],
    ['unban', { client: { ip: '192.0.2.7' }, for: '1h' }, 400],
    ['override', { client: { ip: '192.0.2.7' }, requests: 5, for: '1h' }, 400],
    ['override', { policy: 'login', client: { ip: '192.0.2.7' }, requests: 0, for: '1h' }, 400],
    ['override', { policy: 'login', client: { ip: '192.0.2.7' }, requests: 1.5, for: '1h' }, 400],
    ['override', { policy: 'login', client: { ip: '192.0.2.7' }, requests: '5', for: '1h' }, 400],
    // Fewer units than a request reserves.
    ['override', { policy: 'chat', client: { ip: '192.0.2.7' }, requests: 9, for: '1h' }, 400],
    ['override', { policy: 'none', client: { ip: '192.0.2.7' }, requests: 9, for: '1h' }, 404],
    ['override/remove', { client: { ip: '192.0.2.7' } }, 400],
  ])('%s %j is %i', async (verb, body, status) => {
    const reply = await askOperator(gateway, 'POST', `/api/clients/${verb}`, body)
    expect(reply.status).toBe(status)
    expect(reply.body).toMatchObject({ code: status, error: expect.any(String) as unknown })
  })

  test.each([
    ['ban', 'reason', { reason: 'two\nlines' }],
    ['ban', 'reason', { reason: 'x'.repeat(201) }],
    ['ban', 'reason', { reason: 7 }],
    ['override', 'label', { policy: 'login', requests: 9, label: 'a\u001b[31m' }],
  ])('%s with a wrong %s is told so: %j', async (verb, field, wrong) => {
    const body = { client: { ip: '192.0.2.7' }, for: '1h', ...wrong }
    const error = `${field} must be a text in one line, of at most 200 characters`
    expect(await askOperator(gateway, 'POST', `/api/clients/${verb}`, body)).toMatchObject({
      status: 400,
      body: { code: 400, error },
    })
  })

  test.each([-5, 2.5, null, ''])('override with %j requests is told the bounds', async (requests) => {
    const body = { policy: 'chat', client: { ip: '192.0.2.7' }, requests, for: '1h' }
    const error = 'requests must be a whole number from 1 to 1000000000'
    expect(await askOperator(gateway, 'POST', '/api/clients/override', body)).toMatchObject({
      status: 400,
      body: { code: 400, error },
    })
  })

  test('override with fewer units than a request reserves is told the bounds', async () => {
    const body = { policy: 'chat', client: { ip: '192.0.2.7' }, requests: 9, for: '1h' }
    const error = 'requests must be a whole number from 10 to 1000000000 under the rule chat'
    expect(await askOperator(gateway, 'POST', '/api/clients/override', body)).toMatchObject({
      status: 400,
      body: { code: 400, error },
    })
  })

  test.each(['/api/bans?limit=0', '/api/bans?limit=10001', '/api/overrides?limit=x'])(
    '%s is 400',
    async (path) => {
      expect((await askOperator(gateway, 'GET', path)).status).toBe(400)
    },
  )
})
