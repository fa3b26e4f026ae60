import type { Algorithm } from '../algorithm.ts'
import { createBucketCounts } from './counts.ts'

/** The quota at once, and one unit more each time that the window's share of one has passed. */
export const tokenBucket: Algorithm = {
  name: 'token-bucket',
  memoryTables: (maxKeys) => ({ buckets: maxKeys }),
  createCounts: createBucketCounts,
}
