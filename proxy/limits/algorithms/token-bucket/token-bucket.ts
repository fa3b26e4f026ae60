import type { Algorithm } from '../algorithm.ts'
import { createBucketCounts } from './counts.ts'
import { bucketInRedis } from './redis.ts'

/** The quota at once, and one unit more each time that the window's share of one has passed. */
export const tokenBucket: Algorithm = {
  name: 'token-bucket',
  countsInFlight: false,
  takesUnits: true,
  memoryTables: (maxKeys) => ({ buckets: maxKeys }),
  createCounts: createBucketCounts,
  redis: bucketInRedis,
}
