import { setTimeout as sleep } from 'node:timers/promises'
import type { Policy } from '../../../proxy/policy.ts'
import { chargeAll } from '../limiter/charges.ts'
import type { RunningLimiter } from '../limiter/limiters.ts'

/** The results of a continuous load of requests from many clients to several limiters. */
export type Load = {
  /** Milliseconds since the load began. */
  readonly now: () => number
  /** Admitted requests by client. */
  readonly admitted: ReadonlyMap<string, number>
  readonly unavailable: number
  readonly maxWaitMs: number
  /** How late, at most, this process ran a timer, and so may have read an answer. */
  readonly maxLateMs: number
  /** The maximum number of requests that waited at the same time. */
  readonly maxPending: number
  /** How many requests were admitted between two instants of `now`. */
  admittedBetween(fromMs: number, toMs: number): number
  /** Stops the load, and resolves once all requests are answered. */
  stop(): Promise<void>
}

const CLIENTS = 100
const ASK_EVERY_MS = 2
/** How late a timer may run on an idle machine. */
const USUAL_LATE_MS = 10

/** Begins to send about a thousand requests a second to each limiter, each from one of a hundred clients. */
export function beginLoad(limiters: readonly RunningLimiter[], policies: readonly Policy[]): Load {
  const beganMs = performance.now()
  const now = (): number => performance.now() - beganMs
  const admitted = new Map<string, number>()
  const admittedAtMs: number[] = []
  const waiting = new Set<Promise<void>>()
  let isStopped = false
  let unavailable = 0
  let maxWaitMs = 0
  let maxPending = 0
  let maxLateMs = 0

  async function ask(limiter: RunningLimiter, client: string): Promise<void> {
    const askedAtMs = now()
    const { outcome } = await limiter.decide(chargeAll(client, policies))
    maxWaitMs = Math.max(maxWaitMs, now() - askedAtMs)
    if (outcome === 'unavailable') unavailable += 1
    if (outcome !== 'allowed') return
    admitted.set(client, (admitted.get(client) ?? 0) + 1)
    admittedAtMs.push(now())
  }

  async function keepAsking(limiter: RunningLimiter): Promise<void> {
    for (let asked = 0; !isStopped; asked++) {
      const answer: Promise<void> = ask(limiter, `ip:10.0.0.${asked % CLIENTS}`)
      waiting.add(answer)
      void answer.finally(() => waiting.delete(answer))
      maxPending = Math.max(maxPending, waiting.size)
      if (asked % 3 !== 0) continue
      const dueAtMs = now() + ASK_EVERY_MS
      await sleep(ASK_EVERY_MS)
      maxLateMs = Math.max(maxLateMs, now() - dueAtMs - USUAL_LATE_MS)
    }
  }

  const askers = limiters.map(keepAsking)
  return {
    now,
    admitted,
    get unavailable() {
      return unavailable
    },
    get maxWaitMs() {
      return maxWaitMs
    },
    get maxLateMs() {
      return maxLateMs
    },
    get maxPending() {
      return maxPending
    },
    admittedBetween: (fromMs, toMs) => admittedAtMs.filter((at) => at >= fromMs && at <= toMs).length,
    async stop() {
      isStopped = true
      await Promise.all(askers)
      await Promise.all(waiting)
    },
  }
}

export type SharingWatch = {
  /** When the limiters last did not share their counts, by the load's clock; undefined if they always did. */
  lastNotSharedAtMs: number | undefined
  readonly looks: number
  stop(): Promise<void>
}

/**
 * Checks again and again whether one limiter knows what the other has counted. Each check uses a dozen new clients, so that each node of a
 * cluster has some of them.
 */
export function watchSharing(
  [one, other]: readonly [RunningLimiter, RunningLimiter],
  policy: Policy,
  now: () => number,
): SharingWatch {
  let isStopped = false
  let clients = 0
  let looks = 0

  async function isShared(): Promise<boolean> {
    const charges = chargeAll(`watch:${clients++}`, [policy])
    await one.decide(charges)
    const decision = await other.decide(charges)
    return decision.outcome === 'allowed' && decision.states[0]?.remaining === policy.quota - 2
  }

  async function keepLooking(): Promise<void> {
    while (!isStopped) {
      const lookedAtMs = now()
      const answers = await Promise.all(Array.from({ length: 12 }, isShared))
      looks += 1
      if (answers.includes(false)) watch.lastNotSharedAtMs = lookedAtMs
      await sleep(20)
    }
  }

  const looking = keepLooking()
  const watch: SharingWatch = {
    lastNotSharedAtMs: undefined,
    get looks() {
      return looks
    },
    async stop() {
      isStopped = true
      await looking
    },
  }
  return watch
}

/** The difference between the counts in Redis and the admitted requests: lost counts, and counts without an admitted request. */
export async function compareCounts(
  limiter: RunningLimiter,
  load: Load,
  policy: Policy,
): Promise<{ lost: number; surplus: number }> {
  let lost = 0
  let surplus = 0
  for (const [client, count] of load.admitted) {
    const counted = await limiter.connection.client.get(
      `sluice:1:{${client}}:${policy.name}:${policy.windowMs}`,
    )
    const difference = Number(counted) - count
    if (difference < 0) lost -= difference
    else surplus += difference
  }
  return { lost, surplus }
}
