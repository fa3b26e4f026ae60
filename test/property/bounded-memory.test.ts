import fc from 'fast-check'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { afterEach, expect, test, vi } from 'vitest'
import { BoundedMemory } from '../../proxy/limits/clients/bounded-memory.ts'
import { runs } from '../support/random/runs.ts'

afterEach(() => vi.useRealTimers())

/** The fields of an answer that the gateway reads. */
async function told(answer: Promise<RateLimiterRes | boolean | null>): Promise<unknown> {
  const found = await answer.catch((error: unknown) =>
    error instanceof RateLimiterRes ? ['over', error] : error,
  )
  const [how, result] = Array.isArray(found) ? (found as unknown[]) : ['', found]
  if (!(result instanceof RateLimiterRes)) return result
  return [how, result.consumedPoints, result.msBeforeNext]
}

test('with fewer clients than its bound, it gives the same answers as the library’s memory', async () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const seconds = fc.integer({ min: 1, max: 5 })
  const step = fc.oneof(
    fc.tuple(fc.constant('consume' as const), key, fc.integer({ min: 1, max: 3 })),
    fc.tuple(fc.constant('penalty' as const), key, fc.integer({ min: 1, max: 3 })),
    fc.tuple(fc.constant('block' as const), key, seconds),
    fc.tuple(fc.constant('set' as const), key, fc.tuple(fc.integer({ min: 0, max: 9 }), seconds)),
    fc.tuple(fc.constant('get' as const), key),
    fc.tuple(fc.constant('delete' as const), key),
    fc.tuple(fc.constant('wait' as const), fc.integer({ min: 0, max: 4_000 })),
  )
  const options = fc.record({ points: fc.integer({ min: 0, max: 4 }), duration: seconds })
  await fc.assert(
    fc.asyncProperty(options, fc.array(step, { maxLength: 40 }), async (given, steps) => {
      vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
      // The library uses the wall clock, which stands still here.
      const ours = new BoundedMemory(given, () => Date.now())
      const theirs = new RateLimiterMemory(given)
      for (const each of steps) {
        if (each[0] === 'wait') vi.advanceTimersByTime(each[1])
        else {
          const [own, other] = [ours, theirs].map((memory) => {
            if (each[0] === 'set') return memory.set(each[1], ...each[2])
            if (each[0] === 'get' || each[0] === 'delete') return memory[each[0]](each[1])
            return memory[each[0]](each[1], each[2])
          })
          if (own && other) expect(await told(own)).toEqual(await told(other))
        }
      }
    }),
    { numRuns: runs(3000) },
  )
})
