import { MAX_SLIDING_QUOTA } from '../../../policy.ts'
import type { Algorithm } from '../algorithm.ts'
import { createSlidingCounts } from './counts.ts'
import { slidingInRedis } from './redis.ts'

/** Times for each client there may be: with its share of them a client costs less than 200 bytes. */
const TIMES_PER_KEY = 12

/** Never more requests than the quota in any span of the window's length: each counts until exactly that long after it. */
export const sliding: Algorithm = {
  name: 'sliding',
  countsInFlight: false,
  takesUnits: false,
  memoryTables: (maxKeys) => ({ sliding: maxKeys, 'sliding-times': timeCapacity(maxKeys) }),
  createCounts: (options) => createSlidingCounts(options, timeCapacity(options.maxKeys)),
  redis: slidingInRedis,
}

function timeCapacity(maxKeys: number): number {
  return Math.max(maxKeys * TIMES_PER_KEY, MAX_SLIDING_QUOTA + TIMES_PER_KEY)
}
