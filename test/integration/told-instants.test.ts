import { expect, test } from 'vitest'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import type { RunningLimiter } from '../support/limiter/limiters.ts'
import { openAnsweringLimiter } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'

const WINDOW_MS = 25
const ROUNDS = 25

// Redis keeps a key for the millisecond in which it expires, and a request in that millisecond was refused for the window before.
const kinds: readonly (readonly [string, Partial<Policy>, ...others: Policy[]])[] = [
  ['a fixed window', {}],
  ['a fixed window beside another rule', {}, makePolicy('wide', 1_000_000, 60_000)],
  ['a fixed window with a refund', { countStatus: [{ first: 401, last: 401 }] }],
  ['a fixed window of stored plans', { plans: { quotas: { pro: 1 } } }],
  ['a sliding window', { algorithm: 'sliding' }],
  ['a token bucket', { algorithm: 'token-bucket' }],
]

test.for(kinds)(
  'a request passes at the instant that a refusal tells, under %s',
  async ([, kind, ...others]) => {
    const limiter = await openAnsweringLimiter(await freshRedis())
    const policy = makePolicy('told', 1, WINDOW_MS, kind)
    for (let round = 0; round < ROUNDS; round++) {
      const charges = chargeAll(newClient(), [policy, ...others])
      await limiter.decide(charges)
      const dueAtMs = await refusedUntil(limiter, charges)
      if (dueAtMs === undefined) continue
      // A timer would be late by a millisecond.
      while (performance.now() < dueAtMs);
      expect(await limiter.decide(charges), `round ${round}`).toMatchObject({ outcome: 'allowed' })
    }
  },
)

/** @returns the instant at which a request passes, as of when the refusal arrived; undefined if the window has ended before */
async function refusedUntil(
  limiter: RunningLimiter,
  charges: ReturnType<typeof chargeAll>,
): Promise<number | undefined> {
  const decision = await limiter.decide(charges)
  if (decision.outcome !== 'refused') return undefined
  return performance.now() + (decision.states[0]?.resetMs ?? 0)
}
