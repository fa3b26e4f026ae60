import type { Policy } from '../policy.ts'
import type { Charge, Decision, Limiter, PolicyState } from './limiter.ts'
import type { UnsavedCharge } from './memory-limiter.ts'
import { RedisCounters } from './redis-counters.ts'
import {
  addOnceScript,
  decideScript,
  runScript,
  type RedisClient,
  type RedisScript,
} from './redis-scripts.ts'

/** What the limiter reports of each command to Redis, and asks for what Redis does not answer. */
export type RedisLimiterHooks = {
  /** A command was answered. */
  answered(durationMs: number): void
  /** A command failed, was not sent, or had no answer in time. */
  failed(reason: string): void
  /** Redis answered, but refused to touch a counter of this policy. */
  counterBroken(policy: Policy, reason: string): void
  /** What to answer for a request that Redis gave no decision on. */
  decideWithout(charges: readonly Charge[], uncertain: boolean): Decision
  /** Redis refused. `askedAtMs` is earlier than the instant that the states refer to. */
  refused(charges: readonly Charge[], decision: Decision & { outcome: 'refused' }, askedAtMs: number): void
}

export type RedisLimiter = Limiter & {
  decide(charges: readonly Charge[]): Promise<Decision>
  /** Whether Redis decides in time, asked with a counter of the gateway's own. Counts for no client. */
  probe(): Promise<boolean>
  /** Adds once what was admitted elsewhere. The same `id` may be sent again until it resolves to true. */
  addOnce(id: string, charges: readonly UnsavedCharge[]): Promise<boolean>
  /** Answers everything that waits, as `unavailable` would be. */
  giveUp(): void
  countersOf(policy: Policy): RedisCounters
}

/**
 * Counts in Redis. All requests that ask in the same turn of the event loop travel in one command, which decides each
 * of them atomically with all its charges. A command is never sent twice, unless Redis says that it did not run it.
 */
export function createRedisLimiter(options: {
  readonly redis: RedisClient
  readonly timeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly hooks: RedisLimiterHooks
}): RedisLimiter {
  const { redis, timeoutMs, now, hooks } = options
  const byPolicy = new Map<Policy, RedisCounters>()
  // A command of a cluster goes to one node, and requests of one turn seldom belong to the same.
  const chargesInCommand = redis.isCluster ? 1 : 256
  const waiting = new Set<Batch>()
  let next = createBatch()

  function countersOf(policy: Policy): RedisCounters {
    const known = byPolicy.get(policy)
    if (known) return known
    const counters = new RedisCounters(policy, redis)
    byPolicy.set(policy, counters)
    return counters
  }

  function send(): void {
    const batch = next
    if (batch.requests.length === 0) return
    next = createBatch()
    if (redis.status !== 'ready') {
      settleWithout(batch, false)
      hooks.failed('not connected')
      return
    }
    waiting.add(batch)
    batch.askedAtMs = now()
    batch.deadline = setTimeout(expire, timeoutMs, batch)
    const keysAndArguments = batch.keys.concat(batch.parameters, batch.kinds)
    runScript(redis, decideScript, batch.keys.length, keysAndArguments, () => waiting.has(batch)).then(
      (reply) => receive(batch, reply),
      (error: unknown) => fail(batch, error),
    )
  }

  function receive(batch: Batch, reply: unknown): void {
    if (!finish(batch)) return
    if (!Array.isArray(reply)) throw new TypeError('the script of the decision replied no list')
    hooks.answered(now() - batch.askedAtMs)
    let at = 0
    for (const { charges, resolve } of batch.requests) {
      resolve(readDecision(charges, reply, at, batch.askedAtMs))
      at += 2 * charges.length
    }
  }

  function readDecision(
    charges: readonly Charge[],
    reply: readonly unknown[],
    start: number,
    askedAtMs: number,
  ): Decision {
    const states: PolicyState[] = []
    let refusedBy: Policy | undefined
    let at = start
    for (const { policy } of charges) {
      const left = reply[at]
      const resetMs = reply[at + 1]
      if (typeof left !== 'number' || typeof resetMs !== 'number') {
        hooks.counterBroken(policy, String(left))
        return hooks.decideWithout(charges, false)
      }
      const exceeded = left < 0
      if (exceeded && policy.mode === 'enforce') refusedBy ??= policy
      states.push({ policy, exceeded, remaining: exceeded ? 0 : left, resetMs })
      at += 2
    }
    if (!refusedBy) return { outcome: 'allowed', states }
    const decision = { outcome: 'refused', refusedBy, states } as const
    hooks.refused(charges, decision, askedAtMs)
    return decision
  }

  function fail(batch: Batch, error: unknown): void {
    if (!finish(batch)) return
    settleWithout(batch, !isReply(error))
    hooks.failed(error instanceof Error ? error.message : String(error))
  }

  /** The timer is due, but after a pause of this process the answer may be there and only be unread: read it first. */
  function expire(batch: Batch): void {
    setImmediate(() => {
      if (!finish(batch)) return
      settleWithout(batch, true)
      hooks.failed(`no answer in ${timeoutMs} ms`)
    })
  }

  /** Whether the batch was still waiting. What arrives after its end is not looked at. */
  function finish(batch: Batch): boolean {
    clearTimeout(batch.deadline)
    return waiting.delete(batch)
  }

  function settleWithout(batch: Batch, uncertain: boolean): void {
    for (const { charges, resolve } of batch.requests) resolve(hooks.decideWithout(charges, uncertain))
  }

  /**
   * Whether Redis runs the script without an error, in time. Sent as text: it must not fall behind what is sent after
   * it because Redis does not know its digest.
   */
  async function settles(
    script: RedisScript,
    keyCount: number,
    args: string[],
    limitMs: number,
  ): Promise<boolean> {
    if (redis.status !== 'ready') return false
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), limitMs)
    })
    try {
      const reply = await Promise.race([redis.eval(script.source, keyCount, args), timeout])
      return !Array.isArray(reply) || typeof reply[0] === 'number'
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    decide(charges) {
      return new Promise((resolve) => {
        if (next.keys.length + charges.length > chargesInCommand) send()
        if (next.requests.length === 0) setImmediate(send)
        next.requests.push({ charges, resolve })
        let isFirst = true
        for (const { policy, partitionKey } of charges) {
          const counters = countersOf(policy)
          next.keys.push(counters.getKey(partitionKey))
          next.parameters.push(counters.quotaArgument, counters.windowArgument)
          next.kinds += isFirst ? counters.kindFirst : counters.kindJoined
          isFirst = false
        }
      })
    },
    probe: () => settles(decideScript, 1, [PROBE_KEY, '1000000', '1000', 'E'], timeoutMs),
    addOnce(id, charges) {
      const nowMs = now()
      const running = charges.filter(({ endsAtMs }) => endsAtMs > nowMs)
      const [first] = running
      if (!first) return Promise.resolve(true)
      const keys: string[] = [`sluice:1:{${first.partitionKey}}:added:${id}`]
      const parameters: string[] = []
      let longestMs = 0
      for (const { policy, partitionKey, amount, endsAtMs } of running) {
        const leftMs = Math.ceil(endsAtMs - nowMs)
        longestMs = Math.max(longestMs, leftMs)
        keys.push(countersOf(policy).getKey(partitionKey))
        parameters.push(String(amount), String(leftMs))
      }
      // Kept until the last of the windows has ended: after that, nothing of this is sent again.
      return settles(addOnceScript, keys.length, [...keys, String(longestMs), ...parameters], ADD_TIMEOUT_MS)
    },
    giveUp() {
      for (const batch of waiting) if (finish(batch)) settleWithout(batch, true)
    },
    countersOf,
  }
}

/** Counts for nobody and is gone after a second. Not in the form of a counter's key, so it can never be one. */
const PROBE_KEY = 'sluice:1:probe'
const ADD_TIMEOUT_MS = 1000

/** One command in the making or on its way. */
type Batch = {
  readonly requests: { readonly charges: readonly Charge[]; readonly resolve: (decision: Decision) => void }[]
  readonly keys: string[]
  readonly parameters: string[]
  kinds: string
  askedAtMs: number
  deadline: NodeJS.Timeout | undefined
}

function createBatch(): Batch {
  return { requests: [], keys: [], parameters: [], kinds: '', askedAtMs: 0, deadline: undefined }
}

/** Redis itself answered with an error: it did not run the script. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}
