import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const secret = new TextEncoder().encode('a secret that is long enough for HMAC with SHA-256')

function tokenOf(sub: string, plan?: string): Promise<string> {
  return new SignJWT(plan === undefined ? {} : { plan })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sub)
    .sign(secret)
}

async function start(store: Record<string, string>): Promise<HostedGateway> {
  const { url } = await startBackend()
  const folder = makeTemporaryDirectory()
  writeFileSync(join(folder, 'secret'), secret)
  const CONFIG_FILE = join(folder, 'sluice.yaml')
  writeFileSync(
    CONFIG_FILE,
    `jwt: { secretFile: secret }
limits:
  - name: api
    match: GET /api
    key: { first: [jwt:sub, ip] }
    requests: 2
    window: month
    plans: { free: 3, pro: 5 }
    plan: jwt:plan
`,
  )
  return startHosted({ UPSTREAM_URL: url, CONFIG_FILE, ...store })
}

let lastClient = 1
const newUser = (): string => `user-${++lastClient}`

describe.each<[string, () => Promise<Record<string, string>>]>([
  ['in memory', () => Promise.resolve({})],
  ['of two workers', () => Promise.resolve({ WORKERS: '2' })],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
])('plans of tokens, counters %s', (name, store) => {
  let gateway: HostedGateway

  beforeAll(async () => {
    gateway = await start(await store())
  })

  async function ask(token: string | undefined, from = '127.0.0.1') {
    const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    const reply = await gateway.send('GET', '/api', { from, headers })
    const [, quota] = /;q=(\d+);/.exec(String(reply.headers['ratelimit-policy'])) ?? []
    return { status: reply.status, quota: Number(quota) }
  }

  test.each<[string | undefined, number]>([
    ['free', 3],
    ['pro', 5],
    [undefined, 2],
    ['gold', 2],
  ])('%s: %i requests', async (plan, quota) => {
    const token = await tokenOf(newUser(), plan)
    for (let i = 0; i < quota; i++) expect(await ask(token)).toEqual({ status: 200, quota })
    expect(await ask(token)).toEqual({ status: 429, quota })
    expect(await ask(token)).toEqual({ status: 429, quota })
  })

  test('a client without a token has the quota of the rule', async () => {
    for (const status of [200, 200, 429])
      expect(await ask(undefined, '127.0.0.9')).toEqual({ status, quota: 2 })
  })

  test('a new plan holds for the next request, less the requests used before', async () => {
    const user = newUser()
    const [free, pro] = [await tokenOf(user, 'free'), await tokenOf(user, 'pro')]
    for (const status of [200, 200, 200, 429, 429]) expect((await ask(free)).status).toBe(status)
    for (const status of [200, 200, 429, 429]) expect(await ask(pro)).toEqual({ status, quota: 5 })
    expect(await ask(free)).toEqual({ status: 429, quota: 3 })
  })

  test('an override that an operator sets comes before the plan', async () => {
    const user = newUser()
    const pro = await tokenOf(user, 'pro')
    const override = { policy: 'api', client: { 'jwt:sub': user }, requests: 1, for: '1h' }
    expect((await askOperator(gateway, 'POST', '/api/clients/override', override)).status).toBe(200)
    expect([await ask(pro), await ask(pro)]).toEqual([
      { status: 200, quota: 1 },
      { status: 429, quota: 1 },
    ])
  })

  test('explain has the plan and its quota', async () => {
    const headers = { authorization: `Bearer ${await tokenOf(newUser(), 'pro')}` }
    const question = { method: 'GET', target: '/api', headers }
    expect((await askOperator(gateway, 'POST', '/api/explain', question)).body).toMatchObject({
      rules: [{ name: 'api', requests: 5, plan: 'pro', states: [{ limit: 5, remaining: 5 }] }],
    })
  })

  test('the table of limits and the metrics have the plans', async () => {
    expect((await askOperator(gateway, 'GET', '/api/limits')).body).toMatchObject({
      limits: [
        {
          requests: 2,
          plans: { free: 3, pro: 5 },
          plan: 'jwt:plan',
          calendar: { unit: 'month', timezone: 'UTC' },
        },
      ],
    })
    if (name === 'of two workers') return
    const { body: text } = await send(gateway.adminPort, 'GET', '/metrics')
    const counted = (plan: string): number =>
      parseExposition(text).value('sluice_plan_requests_total', { policy: 'api', plan })
    for (const plan of ['free', 'pro', 'none', 'unknown']) expect(counted(plan)).toBeGreaterThan(0)
  })
})
