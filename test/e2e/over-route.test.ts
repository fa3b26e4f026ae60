import { expect, test } from 'vitest'
import { fieldLines, startBackend, type Backend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/** Headers that caches read, some of them instead of `Cache-Control`. */
const cacheFields = {
  'cache-control': 'public, max-age=3600',
  'cdn-cache-control': 'max-age=3600',
  'cloudflare-cdn-cache-control': 'max-age=3600',
  'vercel-cdn-cache-control': 'max-age=3600',
  'netlify-cdn-cache-control': 'max-age=3600',
  'akamai-cache-control': 'max-age=3600',
  'x-litespeed-cache-control': 'public, max-age=3600',
  'surrogate-control': 'max-age=3600',
  'edge-control': 'max-age=1h',
  'x-accel-expires': '3600',
  expires: 'Fri, 31 Dec 2100 00:00:00 GMT',
}

type Running = HostedGateway & { readonly app: Backend; readonly page: Backend }

/** @param limits the table, in which only `over` leads to the route `page` */
async function start(limits: string, env: Record<string, string> = {}): Promise<Running> {
  const [app, page] = await Promise.all(
    ['app', 'page'].map((name) =>
      startBackend((_, response) => {
        for (const [field, value] of Object.entries(cacheFields)) response.setHeader(field, value)
        response.end(name)
      }),
    ),
  )
  if (!app || !page) throw new Error('no backends')
  const yaml = `upstream: ${app.url}
routes:
  - { name: page, onlyOver: true, upstream: ${page.url} }
limits:
${limits}`
  return { ...(await startHosted({ CONFIG_FILE: writeConfigFile(yaml), ...env })), app, page }
}

async function bodies({ send }: HostedGateway, times: number, path = '/search'): Promise<string[]> {
  const found: string[] = []
  for (let i = 0; i < times; i++) {
    const { status, body } = await send('GET', path)
    found.push(status === 200 ? body : String(status))
  }
  return found
}

const soft = '  - { name: soft, match: GET /search, requests: 2, window: 10m, over: { route: page } }\n'
const hard = '  - { name: hard, match: GET /search, requests: 4, window: 10m }\n'

test.each(['memory', 'Redis', 'two workers'])(
  'requests over the limit of one rule go to another route, until another rule refuses: %s',
  async (store) => {
    const env: Record<string, string> =
      {
        memory: {},
        Redis: { REDIS_URL: await freshRedis() },
        'two workers': { WORKERS: '2' },
      }[store] ?? {}
    const gateway = await start(soft + hard, env)
    expect(await bodies(gateway, 6)).toEqual(['app', 'app', 'page', 'page', '429', '429'])
    expect(gateway.page.seen.map(({ url }) => url)).toEqual(['/search', '/search'])
    expect(await bodies(gateway, 2, '/other')).toEqual(['app', 'app'])
  },
)

test('the other backend learns the rule, which no client can pretend', async () => {
  const gateway = await start(soft, { KEEP_UNUSUAL_HEADERS: 'true', TRUSTED_PROXIES: '127.0.0.0/8' })
  const pretend = { 'X-Sluice-Over': 'soft', X_Sluice_Over: 'soft', 'x-sluice-over': 'other' }
  for (let i = 0; i < 3; i++) await gateway.send('GET', '/search', { headers: pretend })
  const told = [...gateway.app.seen, ...gateway.page.seen].map((request) =>
    ['x-sluice-over', 'x_sluice_over'].flatMap((name) => fieldLines(request, name)),
  )
  expect(told).toEqual([[], [], ['soft']])
})

test('no cache may store the response of the other backend', async () => {
  const gateway = await start(soft)
  const replies = []
  for (let i = 0; i < 3; i++) replies.push(await gateway.send('GET', '/search'))
  const read = replies.map(({ headers }) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => name in cacheFields)),
  )
  expect(read).toEqual([cacheFields, cacheFields, { 'cache-control': 'no-store' }])
  expect(replies[2]?.headers['ratelimit']).toMatch(/^"soft";r=0;t=\d+$/)
  expect(replies[2]?.headers['retry-after']).toBeUndefined()
})

test('the first of several exceeded rules chooses the route, and each rule counts', async () => {
  const gateway = await start(
    soft + '  - { name: other, match: "* /*", requests: 1, window: 10m, over: { route: page } }\n',
  )
  expect(await bodies(gateway, 3)).toEqual(['app', 'page', 'page'])
  expect(gateway.page.seen.map((request) => fieldLines(request, 'x-sluice-over'))).toEqual([
    ['other'],
    ['soft'],
  ])
})

test('a rule in shadow sends nothing to another route', async () => {
  const gateway = await start(soft.replace('over:', 'mode: shadow, over:'))
  expect(await bodies(gateway, 3)).toEqual(['app', 'app', 'app'])
})

test('a banned client does not get to the other route', async () => {
  const gateway = await start(soft)
  await bodies(gateway, 2)
  await askOperator(gateway, 'POST', '/api/clients/ban', { client: { ip: '127.0.0.1' }, for: '1h' })
  expect(await bodies(gateway, 1)).toEqual(['429'])
  expect(gateway.page.seen).toEqual([])
})

test('the answer of the other backend makes no device known', async () => {
  const gateway = await start(
    `  - name: account
    match: POST /login
    key: query:user
    requests: 1
    window: 10m
    device: { status: [200] }
    over: { route: page }
`,
    { DEVICE_SECRET: 'a-secret-of-more-than-32-characters' },
  )
  const sent = []
  for (let i = 0; i < 2; i++) {
    const { body, headers } = await gateway.send('POST', '/login?user=anna')
    sent.push([body, headers['set-cookie'] !== undefined])
  }
  expect(sent).toEqual([
    ['app', true],
    ['page', false],
  ])
})

test('requests in flight over the limit go to the other route, and do not count there', async () => {
  const gateway = await start(
    '  - { name: busy, match: POST /chat, concurrency: 1, over: { route: page } }\n',
  )
  const held: (() => void)[] = []
  gateway.app.server.removeAllListeners('request')
  gateway.app.server.on('request', (_, response) => held.push(() => void response.end('app')))
  const first = gateway.send('POST', '/chat', { body: 'x' })
  await eventually('the first request is at the backend', () => held.length === 1)
  const others = await Promise.all([1, 2, 3].map(() => gateway.send('POST', '/chat', { body: 'y' })))
  expect(others.map(({ body }) => body)).toEqual(['page', 'page', 'page'])
  held.forEach((answer) => answer())
  expect((await first).body).toBe('app')
})

test('log, metrics and explain name the rule that sent a request to another route', async () => {
  const gateway = await start(soft, { ACCESS_LOG: 'true' })
  const explain = async () =>
    (await askOperator(gateway, 'POST', '/api/explain', { method: 'GET', target: '/search' })).body
  expect(await explain()).toMatchObject({ refusedBy: null, routedBy: null })
  await bodies(gateway, 3)
  await gateway.waitForLine(/"path":"\/search".*"route":"page","routedBy":"soft"/)
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()
  expect(metrics).toContain('sluice_decisions_total{policy="soft",outcome="routed"} 1')
  expect(metrics).toContain('sluice_limited_requests_total{policy="soft",outcome="over"} 1')
  expect(metrics).toContain('sluice_upstream_duration_seconds_count{upstream="page"} 1')
  expect(await explain()).toMatchObject({
    refusedBy: null,
    routedBy: 'soft',
    rules: [{ name: 'soft', over: { route: 'page' } }],
  })
})
