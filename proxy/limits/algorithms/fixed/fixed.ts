import type { Algorithm } from '../algorithm.ts'
import { createFixedCounts } from './counts.ts'

/** A window begins with a client's first request and ends after its length. */
export const fixed: Algorithm = {
  name: 'fixed',
  memoryTables: (maxKeys) => ({ counters: maxKeys }),
  createCounts: createFixedCounts,
}
