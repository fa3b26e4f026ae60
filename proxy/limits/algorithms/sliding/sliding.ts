import { countedInWindows } from '../algorithm-rule.ts'
import type { Algorithm } from '../algorithm.ts'
import { SlidingCounts } from './counts.ts'
import { slidingInRedis } from './redis.ts'

/** The average number of times for each client of a full table. With this share of them, a client costs less than 200 bytes. */
const TIMES_PER_KEY = 12

/**
 * The maximum quota of a sliding window. The time of each request is kept for as long as the request is in the window,
 * and one client can have as many requests as the quota.
 */
const MAX_SLIDING_QUOTA = 100_000

/** Above this quota, a sliding window takes more than 100 kB for one client. */
const MANY_TIMES = 10_000
const BYTES_OF_A_TIME = 10

/** Allows at most the quota in any span of the window's length: each request counts for exactly that long. */
export const sliding: Algorithm = {
  name: 'sliding',
  countsInFlight: false,
  takesUnits: false,
  resets: 'one',
  rule: {
    summary: 'the limit holds in any span of that length',
    maxQuota: MAX_SLIDING_QUOTA,
    when: 'with algorithm: sliding',
    excludes: {
      cost: 'needs algorithm: fixed or token-bucket, as a sliding window remembers each unit by its time',
      lease:
        'needs algorithm: fixed, as in a sliding window a unit would count from when it was leased, and not from when it is used',
    },
    takesBurst: false,
    toQuota: countedInWindows,
    warning({ quota }) {
      if (quota <= MANY_TIMES) return undefined
      const size = `${Math.round((quota * BYTES_OF_A_TIME) / 1000)} kB`
      return (
        `a sliding window keeps the time of each request, up to ${size} for one client; ` +
        'with algorithm: fixed or token-bucket it is less than 200 bytes'
      )
    },
  },
  memoryTables: (maxKeys) => ({ sliding: maxKeys, 'sliding-times': timeCapacity(maxKeys) }),
  createCounts: (options) => new SlidingCounts(options, timeCapacity(options.maxKeys)),
  redis: slidingInRedis,
}

function timeCapacity(maxKeys: number): number {
  return Math.max(maxKeys * TIMES_PER_KEY, MAX_SLIDING_QUOTA + TIMES_PER_KEY)
}
