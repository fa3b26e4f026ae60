import { MAX_QUOTA } from '../../../policy.ts'
import { writtenMs } from '../algorithm-rule.ts'
import type { Algorithm } from '../algorithm.ts'
import { BucketCounts, bucketState, unitMs } from './counts.ts'
import { bucketInRedis } from './redis.ts'

/** The longest time that an empty bucket may take to fill up: the length of the longest window. */
const MAX_REFILL_DAYS = 365
const DAY_MS = 86_400_000

/** Replies of Redis are in microseconds, rounded up. */
const REPLY_STEP_MS = 0.001

/** Allows the quota at once, then one unit every `windowMs / quota` milliseconds. */
export const tokenBucket: Algorithm = {
  name: 'token-bucket',
  countsInFlight: false,
  takesUnits: true,
  resets: 'one',
  rule: {
    summary: 'requests per window on average, burst at once',
    maxQuota: MAX_QUOTA,
    excludes: {
      lease: 'needs algorithm: fixed, as a token bucket would fill up again while its units are leased',
    },
    takesBurst: true,
    findMistake({ requests = 1, window, burst = 0 }) {
      const maxBurst = Math.max(
        1,
        Math.floor((MAX_REFILL_DAYS * DAY_MS * requests) / (writtenMs(window) || 1)),
      )
      if (burst <= maxBurst) return undefined
      const message = `needs at most ${maxBurst}, or an empty bucket would take more than ${MAX_REFILL_DAYS}d to refill`
      return { field: 'burst', message }
    },
    // The quota is the content of a full bucket, and the window is the time in which an empty bucket fills up.
    toQuota({ requests = 0, window, burst }) {
      const windowMs = writtenMs(window)
      if (burst === undefined) return { quota: requests, windowMs }
      return { quota: burst, windowMs: (windowMs * burst) / requests, averageWindowMs: windowMs }
    },
    // The burst of another quota equals its requests, regardless of the rule's burst.
    ofOtherQuota: ({ windowMs, averageWindowMs = windowMs, sharedWindowMs = windowMs }) => ({
      windowMs: averageWindowMs,
      sharedWindowMs,
    }),
  },
  stateWithout(policy, units, { remaining, resetMs }) {
    const debtMs = resetMs - (remaining + 1 + units) * unitMs(policy) + policy.windowMs
    return bucketState(policy, Math.max(0, debtMs - REPLY_STEP_MS))
  },
  memoryTables: (maxKeys) => ({ buckets: maxKeys }),
  createCounts: (options) => new BucketCounts(options),
  redis: bucketInRedis,
}
