import { MAX_QUOTA } from '../../../policy.ts'
import { writtenMs } from '../algorithm-rule.ts'
import type { Algorithm } from '../algorithm.ts'
import { BucketCounts } from './counts.ts'
import { bucketInRedis } from './redis.ts'

/** The longest that an empty bucket may take to be full: as long as the longest window. */
const MAX_REFILL_DAYS = 365
const DAY_MS = 86_400_000

/** Allows the quota at once, then one unit for each fraction of the window that one unit takes. */
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
    // The content of a full bucket, and the time in which an empty one fills up.
    toQuota({ requests = 0, window, burst }) {
      const windowMs = writtenMs(window)
      if (burst === undefined) return { quota: requests, windowMs }
      return { quota: burst, windowMs: (windowMs * burst) / requests, averageWindowMs: windowMs }
    },
    // Its burst is as many as its requests then, whatever that of the rule is.
    ofOtherQuota: ({ windowMs, averageWindowMs = windowMs, sharedWindowMs = windowMs }) => ({
      windowMs: averageWindowMs,
      sharedWindowMs,
    }),
  },
  memoryTables: (maxKeys) => ({ buckets: maxKeys }),
  createCounts: (options) => new BucketCounts(options),
  redis: bucketInRedis,
}
