import { describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { createClock, startSluice } from '../../proxy/testing/embedded/start-sluice.ts'

const exactBody = '{"code":429,"error":"Too many requests, Please try after a while!"}'

const table = [
  { method: 'POST', path: '/login', requests: 30, windowSeconds: 900 },
  { method: 'POST', path: '/signup', requests: 30, windowSeconds: 3600 },
  { method: 'POST', path: '/verify-email', requests: 10, windowSeconds: 3600 },
  { method: 'POST', path: '/forgot-password', requests: 5, windowSeconds: 3600 },
  { method: 'GET', path: '/client-side-api', requests: 100, windowSeconds: 60 },
  { method: 'POST', path: '/share', requests: 100, windowSeconds: 3600 },
] as const

describe.each(['embedded', 'redis'])('the table as it comes, counters %s', (store) => {
  test('lets exactly the allowed number through, then refuses', async () => {
    const backend = await startBackend()
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      ...(store === 'redis' && { REDIS_URL: await freshRedis() }),
    })
    for (const { method, path, requests, windowSeconds } of table) {
      const name = path.slice(1)
      const beganAtMs = performance.now()
      for (let sent = 1; sent <= requests; sent++) {
        const reply = await gateway.send(method, path)
        expect(reply).toMatchObject({ status: 200, body: 'ok' })
        expect(reply.headers['ratelimit-policy']).toBe(`"${name}";q=${requests};w=${windowSeconds}`)
        expect(reply.headers['ratelimit']).toMatch(new RegExp(`^"${name}";r=${requests - sent};t=[0-9]+$`))
      }
      for (let over = 0; over < 3; over++) {
        const reply = await gateway.send(method, path)
        expect(reply).toMatchObject({ status: 429, body: exactBody })
        expect(reply.headers).toMatchObject({
          'content-type': 'application/json',
          'cache-control': 'no-store',
          'ratelimit-policy': `"${name}";q=${requests};w=${windowSeconds}`,
        })
        const [, left, endsIn] =
          /^"[a-z-]+";r=([0-9]+);t=([0-9]+)$/.exec(String(reply.headers['ratelimit'])) ?? []
        expect(left).toBe('0')
        const passedSeconds = (performance.now() - beganAtMs) / 1000
        expect(Number(endsIn)).toBeGreaterThanOrEqual(Math.floor(windowSeconds - passedSeconds))
        expect(Number(endsIn)).toBeLessThanOrEqual(windowSeconds)
        expect(reply.headers['retry-after']).toBe(endsIn)
      }
      expect(backend.seen.filter((request) => request.url === path)).toHaveLength(requests)

      const otherMethod = await gateway.send(method === 'GET' ? 'POST' : 'GET', path)
      expect(otherMethod.status).toBe(200)
      expect(otherMethod.headers['ratelimit']).toBeUndefined()
      expect((await gateway.send(method, path, { from: '127.0.0.2' })).status).toBe(200)
    }
    const free = await gateway.send('POST', '/elsewhere')
    expect(free.status).toBe(200)
    expect(free.headers['ratelimit']).toBeUndefined()
  })
})

test('a window ends on time although refused requests went on', async () => {
  const { url: upstream } = await startBackend()
  const clock = createClock()
  const limits = [{ name: 'short', match: 'GET /short', requests: 2, window: '2s' }]
  await using gateway = await startSluice({ upstream, limits, clock })
  const statusAt: number[] = []
  for (let passedMs = 0; passedMs <= 2_000; passedMs += 50) {
    statusAt.push((await send(gateway.port, 'GET', '/short')).status)
    clock.advance(50)
  }
  expect(statusAt).toEqual([200, 200, ...Array<number>(38).fill(429), 200])
})

describe('RATE_LIMITING_DISABLED', () => {
  test.each([
    ['1', 200, 0, 1],
    ['0', 429, 1, 0],
    ['', 429, 1, 0],
    ['true', 429, 1, 1],
  ])('%j: the sixth POST /forgot-password is %i', async (value, status, enabled, warnings) => {
    const backend = await startBackend()
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, RATE_LIMITING_DISABLED: value })
    for (let sent = 0; sent < 5; sent++) await gateway.send('POST', '/forgot-password')
    expect((await gateway.send('POST', '/forgot-password')).status).toBe(status)
    const warned = gateway.output().match(/"level":"warn".*RATE_LIMITING_DISABLED/g) ?? []
    expect(warned.length).toBe(warnings)
    const { body: state } = await send(gateway.adminPort, 'GET', '/api/status')
    expect(JSON.parse(state)).toMatchObject({ limitsEnabled: enabled === 1, rules: enabled * 6 })
    const { body: metrics } = await send(gateway.adminPort, 'GET', '/metrics')
    expect(metrics).toContain(`\nsluice_limits_enabled ${enabled}\n`)
  })
})
