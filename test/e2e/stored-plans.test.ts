import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { openRedis } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'

/* Plans that an operator or the application has set for a client. */

const rule = (name: string, more: string): string =>
  `  - { name: ${name}, match: GET /${name}, key: 'header:x-api-key', requests: 2, plans: { free: 3, pro: 5 }, plan: store, ${more} }\n`
const table = `limits:
${rule('month', 'window: month')}${rule('fixed', 'window: 1h')}${rule('sliding', 'window: 1h, algorithm: sliding')}${rule('bucket', 'window: 1h, algorithm: token-bucket')}${rule('watched', 'window: 1h, mode: shadow')}  - { name: tokens, match: POST /tokens, key: 'header:x-api-key', requests: 2, plans: { free: 3, pro: 5 }, plan: store, window: 1h, cost: { reserve: json:n, settle: json:used } }
  - { name: usual, match: GET /usual, requests: 2, window: 1h }
`

async function start(store: Record<string, string>): Promise<HostedGateway> {
  const { url } = await startBackend()
  return startHosted({ UPSTREAM_URL: url, CONFIG_FILE: join(directoryWith(table), 'sluice.yaml'), ...store })
}

let lastKey = 1
const newKey = (): string => `key-${++lastKey}`

async function ask(gateway: HostedGateway, path: string, key: string) {
  const reply = await gateway.send('GET', path, { headers: { 'x-api-key': key } })
  const [, quota] = /;q=(\d+);/.exec(String(reply.headers['ratelimit-policy'])) ?? []
  return { status: reply.status, quota: Number(quota) }
}

function setPlan(gateway: HostedGateway, key: string, plan: string | null, more: object = {}) {
  const client = { 'header:x-api-key': key }
  return askOperator(gateway, 'POST', '/api/clients/plan', { client, plan, ...more })
}

describe.each<[string, () => Promise<Record<string, string>>]>([
  ['in memory', () => Promise.resolve({})],
  ['of two workers', () => Promise.resolve({ WORKERS: '2' })],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
  ['of two workers in Redis', async () => ({ REDIS_URL: await freshRedis(), WORKERS: '2' })],
])('stored plans, counters %s', (name, store) => {
  let gateway: HostedGateway
  const isWorkers = name.includes('workers')

  beforeAll(async () => {
    gateway = await start(await store())
  })

  test('a request that states no cost is explained to reserve the quota of the plan', async () => {
    for (const [plan, quota] of [
      ['pro', 5],
      [null, 2],
    ] as const) {
      const key = newKey()
      if (plan) await setPlan(gateway, key, plan)
      const question = { method: 'POST', target: '/tokens', headers: { 'x-api-key': key } }
      expect((await askOperator(gateway, 'POST', '/api/explain', question)).body).toMatchObject({
        refusedBy: null,
        rules: expect.arrayContaining([
          expect.objectContaining({ name: 'tokens', units: [quota] }),
        ]) as unknown,
      })
    }
  })

  test.each(['/month', '/fixed', '/sliding', '/bucket'])(
    '%s has the quota of the plan at once',
    async (path) => {
      const key = newKey()
      for (const status of [200, 200, 429, 429])
        expect(await ask(gateway, path, key)).toEqual({ status, quota: 2 })
      expect((await setPlan(gateway, key, 'pro')).body).toMatchObject({
        changed: true,
        clients: [{ plan: 'pro' }],
      })
      // A bucket keeps its fill level when the plan changes: after two of two requests it is empty under any plan.
      if (path === '/bucket') expect(await ask(gateway, path, key)).toEqual({ status: 429, quota: 5 })
      else
        for (const status of [200, 200, 200, 429, 429])
          expect(await ask(gateway, path, key)).toEqual({ status, quota: 5 })
      await setPlan(gateway, key, 'free')
      expect(await ask(gateway, path, key)).toEqual({ status: 429, quota: 3 })
      expect((await setPlan(gateway, key, null)).body).toMatchObject({
        changed: true,
        clients: [{ plan: null }],
      })
      expect(await ask(gateway, path, key)).toEqual({ status: 429, quota: 2 })
      expect((await setPlan(gateway, key, null)).body).toMatchObject({ changed: false })
    },
  )

  test('a bucket has the burst of the plan', async () => {
    const key = newKey()
    await setPlan(gateway, key, 'pro')
    for (const status of [200, 200, 200, 200, 200, 429])
      expect(await ask(gateway, '/bucket', key)).toEqual({ status, quota: 5 })
  })

  test('a rule in shadow has the quota of the plan and refuses nobody', async () => {
    const key = newKey()
    await setPlan(gateway, key, 'free')
    for (let i = 0; i < 5; i++) expect((await ask(gateway, '/watched', key)).status).toBe(200)
  })

  test('an override of the client takes precedence over its plan', async () => {
    if (isWorkers) return
    const key = newKey()
    await setPlan(gateway, key, 'pro')
    const override = { policy: 'month', client: { 'header:x-api-key': key }, requests: 1, for: '1h' }
    expect((await askOperator(gateway, 'POST', '/api/clients/override', override)).status).toBe(200)
    for (const status of [200, 429]) expect(await ask(gateway, '/month', key)).toEqual({ status, quota: 1 })
  })

  test('operators see the plan', async () => {
    const key = newKey()
    await setPlan(gateway, key, 'pro')
    await ask(gateway, '/month', key)
    const client = { 'header:x-api-key': key }
    const inspected = await askOperator(gateway, 'POST', '/api/clients/inspect', { client, policy: 'month' })
    expect(inspected.body).toMatchObject({ states: [{ plan: 'pro', limit: 5, used: 1, remaining: 4 }] })
    const question = { method: 'GET', target: '/month', headers: { 'x-api-key': key } }
    expect((await askOperator(gateway, 'POST', '/api/explain', question)).body).toMatchObject({
      rules: expect.arrayContaining([
        expect.objectContaining({
          name: 'month',
          states: [expect.objectContaining({ plan: 'pro', limit: 5 })],
        }),
      ]) as unknown,
    })
    expect((await askOperator(gateway, 'GET', '/api/plans')).body).toMatchObject({
      complete: true,
      plans: expect.arrayContaining([expect.objectContaining({ plan: 'pro' })]) as unknown,
    })
    expect((await askOperator(gateway, 'GET', '/api/plans?limit=1')).body).toMatchObject({
      complete: false,
      plans: [{}],
    })
    expect((await askOperator(gateway, 'GET', '/api/limits')).body).toMatchObject({
      limits: expect.arrayContaining([expect.objectContaining({ name: 'month', plan: 'store' })]) as unknown,
    })
  })

  test.each<[string, object, number]>([
    ['a plan that no rule has', { client: { 'header:x-api-key': 'a' }, plan: 'gold' }, 404],
    ['a rule without plans', { client: '192.0.2.7', policy: 'usual', plan: 'pro' }, 404],
    ['a rule that is not there', { client: '192.0.2.7', policy: 'nowhere', plan: 'pro' }, 404],
    ['a client that no such rule counts', { client: { 'cookie:id': 'a' }, plan: 'pro' }, 400],
    ['a plan that is no text', { client: { 'header:x-api-key': 'a' }, plan: 5 }, 404],
    ['no client', { plan: 'pro' }, 400],
  ])('%s is an error', async (_, body, status) => {
    expect(await askOperator(gateway, 'POST', '/api/clients/plan', body)).toMatchObject({ status })
  })

  test('from the command line', async () => {
    const key = newKey()
    const sluice = async (...args: string[]) => {
      const { status, stdout, stderr } = await runHosted([
        ...args,
        '--admin',
        `http://127.0.0.1:${gateway.adminPort}`,
      ])
      return { status, text: stdout + stderr }
    }
    const client = `header:x-api-key=${key}`
    const shown = await sluice('plan', client)
    expect(shown).toMatchObject({ status: 1 })
    expect(shown.text).toMatch(/^h:[\w-]{22}: no plan \(month, fixed, sliding, bucket, watched, tokens\)/)
    expect((await sluice('plan', client, 'free', '--rule', 'month')).text).toContain(': plan free (month)')
    expect((await sluice('plan', client)).text).toContain(': plan free (month, fixed')
    expect((await sluice('show', client, '--rule', 'month')).text).toContain('within, plan free')
    expect((await sluice('plans')).text).toMatch(/^CLIENT +KEY +PLAN\n/)
    expect((await sluice('plan', client, 'gold')).status).toBe(1)
    expect((await sluice('plan', client, 'pro', '--remove')).status).toBe(2)
    expect((await sluice('plan', client, '--remove')).status).toBe(0)
    expect((await sluice('plan', client, '--remove')).status).toBe(1)
  })

  test('metrics say which plans there are', async () => {
    if (isWorkers) return
    const { body: text } = await send(gateway.adminPort, 'GET', '/metrics')
    const counted = (plan: string): number =>
      parseExposition(text).value('sluice_plan_requests_total', { policy: 'month', plan })
    for (const plan of ['free', 'pro', 'none']) expect(counted(plan)).toBeGreaterThan(0)
  })
})

describe('in Redis', () => {
  test('a change holds for the next request on all of three replicas', async () => {
    const REDIS_URL = await freshRedis()
    const replicas = await Promise.all([1, 2, 3].map(() => start({ REDIS_URL })))
    const [first] = replicas
    if (!first) throw new RangeError('three replicas')
    const key = newKey()
    for (const path of ['/month', '/fixed']) {
      await setPlan(first, key, 'free')
      for (let i = 0; i < 4; i++) await ask(first, path, key)
      for (const replica of replicas) expect(await ask(replica, path, key)).toEqual({ status: 429, quota: 3 })
      for (const [plan, quota] of [
        ['pro', 5],
        ['free', 3],
        [null, 2],
      ] as const) {
        await setPlan(first, key, plan)
        for (const replica of replicas) expect((await ask(replica, path, key)).quota).toBe(quota)
      }
    }
  })

  test('the application writes the documented key', async () => {
    const REDIS_URL = await freshRedis()
    const gateway = await start({ REDIS_URL, NAMESPACE: 'shop' })
    const redis = openRedis(REDIS_URL)
    const key = newKey()
    const { body } = await askOperator(gateway, 'POST', '/api/clients/plan', {
      client: { 'header:x-api-key': key },
    })
    const written = (body as { clients: { key: string }[] }).clients[0]?.key ?? ''
    expect(written).toMatch(/^sluice:shop:1:\{h:[\w-]{22}\}:plan:header:x-api-key$/)
    for (const [plan, quota] of [
      ['pro', 5],
      ['free', 3],
      ['gold', 2],
      ['', 2],
      ['free=3 pro', 2],
      ['pro\n', 2],
    ] as const) {
      await redis.set(written, plan)
      expect((await ask(gateway, '/month', key)).quota).toBe(quota)
    }
    await redis.del(written)
    await redis.rpush(written, 'pro')
    expect((await ask(gateway, '/month', key)).quota).toBe(2)
    const { body: text } = await send(gateway.adminPort, 'GET', '/metrics')
    const counted = (plan: string): number =>
      parseExposition(text).value('sluice_plan_requests_total', { policy: 'month', plan })
    expect([counted('pro'), counted('free'), counted('none'), counted('unknown')]).toEqual([1, 1, 2, 3])
    expect(await redis.ttl(written)).toBe(-1)
  })
})
