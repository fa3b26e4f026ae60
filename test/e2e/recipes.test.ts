import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { fieldLines, startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const folder = join(import.meta.dirname, '../../docs/recipes')

type Recipe = HostedGateway & {
  /** Functions that answer the requests with `x-held`, which the backend does not answer by itself. */
  readonly held: (() => void)[]
}

/** A gateway with the table of a page, in front of a backend that answers with the status in `x-answer`. */
async function startRecipe(page: string, change: (yaml: string) => string = (yaml) => yaml): Promise<Recipe> {
  const [, yaml = ''] =
    /```yaml\n(# sluice\.yaml\n[^]*?)```/.exec(readFileSync(join(folder, page), 'utf8')) ?? []
  const held: (() => void)[] = []
  const backend = await startBackend((request, response) => {
    response.statusCode = Number(request.headers['x-answer'] ?? 200)
    if (request.headers['x-held'] === undefined) response.end('ok')
    else held.push(() => void response.end('ok'))
  })
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(change(yaml)),
    ...(yaml.includes('redisUrl') && { REDIS_URL: await freshRedis() }),
  })
  return { ...gateway, held }
}

// Connections are reused: a new one for each of two thousand requests would take most of the time.
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
afterAll(() => agent.destroy())

type Headers = Record<string, string>

/** How many of `times` concurrent requests on 16 connections pass. */
async function countPassed(
  gateway: HostedGateway,
  times: number,
  target: string,
  headers: Headers = {},
): Promise<number> {
  const [method = '', path = ''] = target.split(' ')
  const replies = await Promise.all(
    Array.from({ length: times }, () => gateway.send(method, path, { headers, from: '127.0.0.2', agent })),
  )
  return replies.filter(({ status }) => status !== 429).length
}

/** Expects a full bucket to let `burst` requests pass at once, and one more every `unitMs`. */
async function expectBucket(
  gateway: HostedGateway,
  target: string,
  { burst, unitMs, headers = {} }: { burst: number; unitMs: number; headers?: Headers },
): Promise<void> {
  const startedMs = performance.now()
  const passed = await countPassed(gateway, 2 * burst, target, headers)
  expect(passed).toBeGreaterThanOrEqual(burst)
  expect(passed).toBeLessThanOrEqual(burst + (performance.now() - startedMs) / unitMs)
}

/** How many of `times` requests pass while all of them are in flight. */
async function countInFlight(recipe: Recipe, times: number, path: string, method = 'GET'): Promise<number> {
  const headers = { 'x-held': '1' }
  let refused = 0
  const replies = Array.from({ length: times }, async () => {
    const { status } = await recipe.send(method, path, { headers, from: '127.0.0.2' })
    if (status === 429) refused += 1
  })
  const { held } = recipe
  await eventually('each request has passed or was refused', () => expect(refused + held.length).toBe(times))
  const passed = held.length
  held.splice(0).forEach((answer) => answer())
  await Promise.all(replies)
  return passed
}

test('nginx.md', async () => {
  const gateway = await startRecipe('nginx.md')
  // burst=10 nodelay allows ten and one more at once. rate=5r/m allows another one every twelve seconds.
  await expectBucket(gateway, 'POST /login', { burst: 11, unitMs: 12_000 })
  expect(await countInFlight(gateway, 5, '/download/a')).toBe(2)
  expect(await countPassed(gateway, 1, 'GET /download/a')).toBe(1)
  // Without the header, the rule has no client to count.
  expect(await countPassed(gateway, 25, 'GET /api/a')).toBe(25)
  expect(await countPassed(gateway, 1, 'GET /api/a', { 'x-api-key': 'one' })).toBe(1)
})

test('express-rate-limit.md', async () => {
  const gateway = await startRecipe('express-rate-limit.md')
  for (let sent = 0; sent < 10; sent++) expect(await countPassed(gateway, 1, 'POST /login')).toBe(1)
  expect(await countPassed(gateway, 20, 'POST /login', { 'x-answer': '401' })).toBe(5)
  const { status, body } = await gateway.send('POST', '/login', { from: '127.0.0.2' })
  expect({ status, body }).toEqual({ status: 429, body: '{"error":"Slow down"}' })
  expect(await countPassed(gateway, 120, 'GET /api/a')).toBe(100)
})

test('envoy-gateway.md', async () => {
  const gateway = await startRecipe('envoy-gateway.md')
  const host = 'forms.example.com'
  expect(await countPassed(gateway, 40, 'POST /login', { host })).toBe(30)
  expect(await countPassed(gateway, 40, 'POST /login', { host: 'other.example.com' })).toBe(40)
})

test('grpc.md', async () => {
  const gateway = await startRecipe('grpc.md')
  expect(await countPassed(gateway, 40, 'POST /shop.Cart/Add')).toBe(30)
  expect(await countPassed(gateway, 10, 'POST /shop.Cart/List')).toBe(10)
  expect(await countPassed(gateway, 610, 'POST /shop.Cart/List', { 'x-api-key': 'one' })).toBe(600)
  expect(await countInFlight(gateway, 5, '/shop.Orders/Watch', 'POST')).toBe(3)
})

test('challenge.md', async () => {
  const [challenge, busy] = await Promise.all(
    ['challenge', 'busy'].map((name) => startBackend((_, response) => response.end(name))),
  )
  const recipe = await startRecipe('challenge.md', (yaml) =>
    yaml.replace('http://anubis:8923', challenge?.url ?? '').replace('http://pages:8080', busy?.url ?? ''),
  )
  const ask = async (path: string): Promise<string> => (await recipe.send('GET', path)).body
  const bodies = new Map<string, number>()
  for (let i = 0; i < 62; i++) {
    const body = await ask(`/${i}`)
    bodies.set(body, (bodies.get(body) ?? 0) + 1)
  }
  expect(Object.fromEntries(bodies)).toEqual({ ok: 60, challenge: 2 })
  expect(challenge?.seen.map((request) => fieldLines(request, 'x-sluice-over'))).toEqual([
    ['pages'],
    ['pages'],
  ])
  expect(await ask('/.within.website/x/cmd/anubis/static/main.mjs')).toBe('challenge')
  expect(await ask('/api/a')).toBe('ok')

  const headers = { 'x-held': '1' }
  const searches = Array.from({ length: 20 }, (_, i) =>
    recipe.send('GET', '/search', { headers, from: `127.0.0.${i + 2}` }),
  )
  await eventually('all are in flight', () => recipe.held.length === 20)
  expect((await recipe.send('GET', '/search', { from: '127.0.0.99' })).body).toBe('busy')
  recipe.held.splice(0).forEach((answer) => answer())
  expect((await Promise.all(searches)).map(({ body }) => body)).toEqual(searches.map(() => 'ok'))
  expect(await countPassed(recipe, 605, 'GET /many')).toBe(599)
})

test('caddy.md', async () => {
  const gateway = await startRecipe('caddy.md')
  expect(await countPassed(gateway, 40, 'POST /login')).toBe(30)
  expect(await countPassed(gateway, 110, 'GET /api/a', { 'x-api-key': 'one' })).toBe(100)
  // Without the header, the rule has no client to count.
  expect(await countPassed(gateway, 110, 'GET /api/a')).toBe(110)
})

test('traefik.md', async () => {
  const gateway = await startRecipe('traefik.md')
  const headers = { 'x-api-key': 'one' }
  await expectBucket(gateway, 'GET /api/a', { burst: 50, unitMs: 600, headers })
  expect(await countPassed(gateway, 10, 'GET /api/a', { 'x-api-key': 'two' })).toBe(10)
  expect(await countInFlight(gateway, 5, '/exports/a')).toBe(2)
  await gateway.waitForLine(/"level":"warn".*"host":"traefik"/)
})
