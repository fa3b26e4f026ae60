import type { Policy } from '../../policy.ts'
import { windowFrom } from '../algorithms/calendar/calendar-windows.ts'
import { algorithmOf, isReserved } from '../algorithms/registry.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import { chargesOfStates, type Charge, type Decision, type PolicyState } from '../limiter.ts'
import { TwoGenerations } from './two-generations.ts'

export type OverLimitCache = {
  /** The refusal, if one of the charges is known to be over the limit of an enforced policy; otherwise undefined. */
  findRefusal(charges: readonly Charge[]): Decision | undefined
  /**
   * Milliseconds until a client that is over the limit of a policy has requests left; undefined for any other client.
   */
  findOverLimit(charge: Charge): number | undefined
  /**
   * Takes note of a refusal by the shared counters, until its window ends, and for no longer than `knownForMs`.
   * `askedAtMs` is earlier than the instant its states refer to.
   */
  note(
    charges: readonly Charge[],
    refusal: Decision & { outcome: 'refused' },
    askedAtMs: number,
    knownForMs: number,
  ): void
  /**
   * Forgets a client under the policy of this name, or under all, so that the shared counters are asked again. A refusal
   * that was asked for before is not noted any more: it may be older than what made the caller forget.
   */
  forget(policyName: string | undefined, partitionKey: string): void
  /** Forgets all clients, likewise. */
  clear(): void
  readUse(): TableUse
}

/**
 * Clients that the shared counters have refused. Until their window ends they are refused without asking again, so that
 * an attacker costs a map lookup, and Redis nothing.
 *
 * Their number is bounded (`TwoGenerations`). An entry that is dropped too early costs one more round trip to Redis.
 *
 * @param maxEntries the most clients known at once, at least 2
 * @param now milliseconds of a monotonic clock
 * @param wallNow the time of day, in milliseconds since 1970
 */
export function createOverLimitCache(
  maxEntries: number,
  now: () => number,
  wallNow: () => number = Date.now,
): OverLimitCache {
  const known = new TwoGenerations<Policy, Entry>(maxEntries)
  let forgottenAtMs = -Infinity

  return {
    findRefusal(charges) {
      if (known.size === 0) return undefined
      for (const charge of charges) {
        const entry = known.find(charge.policy, charge.partitionKey)
        if (!entry) continue
        const nowMs = now()
        if (entry.endsAtMs <= nowMs || !isAbout(entry, charges)) continue
        const others = policiesOfOthers(entry, charges)
        // Which of the clients under this policy are over its limit is known of those that were asked about.
        if (others?.has(charge.policy)) continue
        const states = statesAt(entry, nowMs, wallNow)
        return {
          outcome: 'refused',
          refusedBy: charge.policy,
          states: others ? statesWithout(others, states, charges) : states,
        }
      }
      return undefined
    },

    findOverLimit({ policy, partitionKey }) {
      const leftMs = (known.find(policy, partitionKey)?.endsAtMs ?? -Infinity) - now()
      return leftMs > 0 ? leftMs : undefined
    },

    note(charges, refusal, askedAtMs, knownForMs) {
      // A refund, or a lower cost, lets the client through again at any time.
      if (askedAtMs <= forgottenAtMs || isReserved(refusal.refusedBy) || refusal.refusedBy.cost) return
      const { refusedBy, states } = refusal
      // Another plan lets it through again at any time, too.
      if (refusedBy.plans && refusedBy.plans.claim === undefined) return
      const refusing = states.findIndex(({ policy, exceeded }) => exceeded && policy === refusedBy)
      const counted = chargesOfStates(charges, states)
      const charge = counted[refusing]
      const state = states[refusing]
      if (!charge || !state) return
      // For a single request there may still be room.
      if ((charge.units ?? 1) > 1) return
      // Counted from the question, which came before the instant of the answer: never a millisecond too long.
      const endsAtMs = askedAtMs + Math.min(state.resetMs, knownForMs)
      known.makeRoom(now())
      const policies = charges.map(({ policy }) => policy)
      const asked = policies.some((policy) => policy.plans) ? policies : undefined
      const keys = counted.length > 1 ? counted.map(({ partitionKey }) => partitionKey) : undefined
      known.set(refusal.refusedBy, charge.partitionKey, { askedAtMs, endsAtMs, states, keys, asked })
    },

    forget(policyName, partitionKey) {
      forgottenAtMs = now()
      known.deleteKey(({ name }) => policyName === undefined || name === policyName, partitionKey)
    },

    clear() {
      forgottenAtMs = now()
      known.clear()
    },

    readUse: () => known.readUse(),
  }
}

/** A refusal by the shared counters, with the states of the request's other policies for the response headers. */
type Entry = {
  readonly askedAtMs: number
  readonly endsAtMs: number
  readonly states: readonly PolicyState[]
  /** The partition keys of the states; undefined where there is only one. */
  readonly keys: readonly string[] | undefined
  /** Where the states may be of the policies of plans: those that were asked about. */
  readonly asked: readonly Policy[] | undefined
}

/** Another request of the same client may match other policies, whose states are not known here. */
function isAbout({ states, asked }: Entry, charges: readonly Charge[]): boolean {
  if (states.length !== charges.length) return false
  if (asked) return asked.every((policy, index) => policy === charges[index]?.policy)
  return states.every(({ policy }, index) => policy === charges[index]?.policy)
}

/** The policies under which a request counts for other clients than the one that was noted; undefined where there are none. */
function policiesOfOthers({ keys }: Entry, charges: readonly Charge[]): ReadonlySet<Policy> | undefined {
  let others: Set<Policy> | undefined
  for (const [at, key] of (keys ?? []).entries()) {
    const charge = charges[at]
    if (charge && charge.partitionKey !== key) (others ??= new Set()).add(charge.policy)
  }
  return others
}

/**
 * The states without those of these policies, and of plans: by their policies it is known which charges the states that are left belong
 * to.
 */
function statesWithout(
  others: ReadonlySet<Policy>,
  states: readonly PolicyState[],
  charges: readonly Charge[],
): PolicyState[] {
  return states.filter(({ policy }, at) => !others.has(policy) && policy === charges[at]?.policy)
}

/**
 * The states as of now, as far as they are known here. A fixed window that has ended since has not begun again. From a
 * sliding one that was not waited for, one request at least has left; when the next one does is not known.
 */
function statesAt({ askedAtMs, states }: Entry, nowMs: number, wallNow: () => number): PolicyState[] {
  return states.map((state) => {
    const resetMs = state.resetMs - (nowMs - askedAtMs)
    if (resetMs > 0) return { ...state, resetMs }
    const { policy } = state
    const resetsAll = algorithmOf(policy).resets === 'all'
    const remaining = resetsAll ? policy.quota : Math.min(policy.quota, state.remaining + 1)
    const untilMoreMs = remaining === policy.quota ? windowFrom(policy, wallNow()) : 0
    return { policy, exceeded: false, remaining, resetMs: untilMoreMs }
  })
}
