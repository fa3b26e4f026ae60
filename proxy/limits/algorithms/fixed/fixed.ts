import { MAX_QUOTA } from '../../../policy.ts'
import { countedInWindows } from '../algorithm-rule.ts'
import type { Algorithm } from '../algorithm.ts'
import { WindowCounts, fromFirstRequest } from './counts.ts'
import { fixedInRedis } from './redis.ts'

/** A window begins with a client's first request and ends after its length. */
export const fixed: Algorithm = {
  name: 'fixed',
  countsInFlight: false,
  takesUnits: false,
  resets: 'all',
  rule: {
    summary: "the window starts with the client's first request",
    maxQuota: MAX_QUOTA,
    excludes: {},
    takesBurst: false,
    toQuota: countedInWindows,
  },
  memoryTables: (maxKeys) => ({ counters: maxKeys }),
  createCounts: (options) => new WindowCounts(options, 'counters', fromFirstRequest),
  redis: fixedInRedis,
}
