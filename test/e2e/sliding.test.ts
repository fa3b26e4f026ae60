import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { atSomePace } from '../support/limiter/paces.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

const limits = `limits:
  - { name: search-1, match: GET /search-1, algorithm: sliding, requests: 2, window: 2s }
  - { name: search-4, match: GET /search-4, algorithm: sliding, requests: 2, window: 8s }
  - { name: search-16, match: GET /search-16, algorithm: sliding, requests: 2, window: 32s }
`

test.concurrent.each(['embedded', 'embedded, two workers', 'redis'])(
  'a sliding window lets one more through when the oldest leaves it, counters %s',
  async (store) => {
    const backend = await startBackend()
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(limits),
      ...(store === 'embedded, two workers' && { WORKERS: '2' }),
      ...(store === 'redis' && { REDIS_URL: await freshRedis() }),
    })
    await atSomePace(async (pace) => {
      /** Sends a request, and expects `left` remaining requests, and the next one in `nextS` seconds at the first pace. */
      const expectAnswer = async (status: number, left: number, nextS: number): Promise<void> => {
        const { status: got, headers } = await gateway.send('GET', `/search-${pace}`)
        expect(headers['ratelimit-policy']).toBe(`"search-${pace}";q=2;w=${2 * pace}`)
        const [, name, r, t] = /^"([\w-]+)";r=(\d+);t=(\d+)$/.exec(String(headers['ratelimit'])) ?? []
        expect({ status: got, name, left: r }).toEqual({ status, name: `search-${pace}`, left: String(left) })
        expect(Number(t)).toBeGreaterThanOrEqual(Math.ceil((nextS - 0.1) * pace))
        expect(Number(t)).toBeLessThanOrEqual(Math.ceil(nextS * pace))
        expect(headers['retry-after']).toBe(status === 429 ? t : undefined)
      }
      const startedAtMs = performance.now()
      const until = (atMs: number): Promise<void> => sleep(startedAtMs + atMs * pace - performance.now())

      await expectAnswer(200, 1, 2)
      await until(1300)
      await expectAnswer(200, 0, 0.7)
      await expectAnswer(429, 0, 0.7)
      await until(2150)
      // A fixed window would have started over, and let two requests pass.
      await expectAnswer(200, 0, 1.15)
      await expectAnswer(429, 0, 1.15)
    })
  },
  120_000,
)
