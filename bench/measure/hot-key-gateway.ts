import { setTimeout as sleep } from 'node:timers/promises'
import type { Decision } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../test/support/limiter/charges.ts'
import { startRedisLimiter, waitUntilAnswering } from '../../test/support/limiter/limiters.ts'

/*
 * A process of `bench/leases.ts`: the limiter of a gateway, whose requests all have one key and are evenly spaced. It reads its task from
 * its argument, reports when it is ready, begins with the first message, and sends its results.
 */

export type HotKeyLoad = {
  readonly url: string
  readonly requestsPerSecond: number
  readonly seconds: number
  readonly quota: number
  readonly windowMs: number
  readonly lease: Policy['lease']
}

export type HotKeySeen = {
  readonly decisions: number
  /** Requests decided without Redis, or not decided. */
  readonly failed: number
  readonly elapsedMs: number
  readonly cpuUs: number
  /**
   * The numbers of admitted and refused requests, by the earliest time at which their window may end, in milliseconds since 1970: Redis
   * counted a request, or lent the unit for it, some time after the gateway had asked.
   */
  readonly windows: readonly (readonly [endsFromMs: number, admitted: number, refused: number])[]
}

const MAX_LATE_MS = 20

const load = JSON.parse(process.argv[2] ?? '') as HotKeyLoad
const limiter = startRedisLimiter(load.url)
await waitUntilAnswering(limiter)
const policy = makePolicy('hot', load.quota, load.windowMs, {
  partition: [{ kind: 'global' }],
  ...(load.lease !== undefined && { lease: load.lease }),
})
const charges = chargeAll('global', [policy])
const windows = new Map<number, { admitted: number; refused: number }>()
let failed = 0

function note(decision: Decision, askedAtMs: number): void {
  const resetMs = decision.outcome === 'unavailable' ? undefined : decision.states[0]?.resetMs
  if (resetMs === undefined || (decision.outcome === 'allowed' && decision.withoutStore)) {
    failed += 1
    return
  }
  const endsFromMs = Math.floor((askedAtMs + resetMs) / 10) * 10
  const window = windows.get(endsFromMs) ?? { admitted: 0, refused: 0 }
  windows.set(endsFromMs, window)
  if (decision.outcome === 'allowed') window.admitted += 1
  else window.refused += 1
}

process.send?.('ready')
await new Promise((begin) => process.once('message', begin))
const pending = new Set<Promise<unknown>>()
const cpu = process.cpuUsage()
const beganMs = performance.now()
let decisions = 0
/** Requests that were due while this process had no core. They are not made up for, because no network delivers so many at once. */
let missed = 0
for (let elapsedMs = 0; elapsedMs < load.seconds * 1000; elapsedMs = performance.now() - beganMs) {
  const due = (elapsedMs / 1000) * load.requestsPerSecond
  missed = Math.max(missed, due - decisions - (load.requestsPerSecond * MAX_LATE_MS) / 1000)
  for (; decisions < due - missed; decisions++) {
    const askedAtMs = Date.now()
    const decision = limiter.decide(charges)
    if (decision instanceof Promise) {
      const done = decision.then((decided) => note(decided, askedAtMs)).finally(() => pending.delete(done))
      pending.add(done)
    } else note(decision, askedAtMs)
  }
  await sleep(1)
}
await Promise.all(pending)
const elapsedMs = performance.now() - beganMs
const { user, system } = process.cpuUsage(cpu)
const seen: HotKeySeen = {
  decisions,
  failed,
  elapsedMs,
  cpuUs: user + system,
  windows: Array.from(
    windows,
    ([endsFromMs, { admitted, refused }]) => [endsFromMs, admitted, refused] as const,
  ),
}
process.send?.(seen, () => {
  limiter.close()
  process.exit()
})
