import type { Algorithm } from '../algorithm.ts'
import { createInFlightCounts } from './counts.ts'

/** A request counts while it is in flight. */
export const concurrency: Algorithm = {
  name: 'concurrency',
  memoryTables: (maxKeys) => ({ 'in-flight': maxKeys }),
  createCounts: ({ maxKeys }) => createInFlightCounts(maxKeys),
}
