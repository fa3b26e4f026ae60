import type { Algorithm } from '../algorithm.ts'
import { createInFlightCounts } from './counts.ts'
import { inFlightInRedis } from './redis.ts'

/** A request counts while it is in flight. */
export const concurrency: Algorithm = {
  name: 'concurrency',
  countsInFlight: true,
  takesUnits: true,
  memoryTables: (maxKeys) => ({ 'in-flight': maxKeys }),
  createCounts: ({ maxKeys }) => createInFlightCounts(maxKeys),
  redis: inFlightInRedis,
}
