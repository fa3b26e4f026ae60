import type { Algorithm } from '../algorithm.ts'
import { createInFlightCounts } from './counts.ts'
import { inFlightInRedis } from './redis.ts'

/** How long the requests in flight of a crashed gateway still count, in milliseconds. */
export const LEASE_MS = 15_000

/** The maximum number of requests in flight that a rule can allow a client. */
export const MAX_CONCURRENCY = 100_000

const noneBeside = 'cannot be combined with concurrency, which counts requests while they are in flight'

/** A request counts while it is in flight. */
export const concurrency: Algorithm = {
  name: 'concurrency',
  countsInFlight: true,
  takesUnits: true,
  resets: 'one',
  rule: {
    ownField: 'concurrency',
    maxQuota: MAX_CONCURRENCY,
    when: 'with concurrency',
    excludes: {
      requests: noneBeside,
      window: noneBeside,
      countStatus: noneBeside,
      cost: noneBeside,
      burst: noneBeside,
      ban: noneBeside,
      algorithm: noneBeside,
      lease: noneBeside,
    },
    takesBurst: false,
    toQuota: ({ concurrency: quota = 0 }) => ({ quota, windowMs: LEASE_MS }),
  },
  memoryTables: (maxKeys) => ({ 'in-flight': maxKeys }),
  createCounts: ({ maxKeys }) => createInFlightCounts(maxKeys),
  redis: inFlightInRedis,
}
