import type { Algorithm } from '../algorithm.ts'
import { createFixedCounts } from './counts.ts'
import { fixedInRedis } from './redis.ts'

/** A window begins with a client's first request and ends after its length. */
export const fixed: Algorithm = {
  name: 'fixed',
  countsInFlight: false,
  takesUnits: false,
  memoryTables: (maxKeys) => ({ counters: maxKeys }),
  createCounts: createFixedCounts,
  redis: fixedInRedis,
}
