import type { Policy } from '../../policy.ts'
import { windowFrom } from '../algorithms/calendar/calendar-windows.ts'
import { algorithmOf, isReserved } from '../algorithms/registry.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import { chargesOfStates, type Charge, type Decision, type PolicyState } from '../limiter.ts'
import { TwoGenerations } from './two-generations.ts'

/** A refusal by the shared counters, with the states of the request's other policies for the response headers. */
type Entry = {
  readonly askedAtMs: number
  readonly endsAtMs: number
  readonly states: readonly PolicyState[]
  /** The partition keys of the states; undefined if there is only one. */
  readonly keys: readonly string[] | undefined
  /** The policies of the charges, if the states may have the policies of plans instead. */
  readonly asked: readonly Policy[] | undefined
}

/** Counters with requests given back that are remembered. Beyond that, no refusal that was requested before is recorded. */
const MAX_GIVEN_BACK = 1000

/**
 * Clients that the shared counters have refused. Until their window ends, they are refused without asking again, so that an attacker
 * costs a map lookup here and nothing in Redis. The current counts of the request's other policies are not known here: their states are
 * those of the reply that refused.
 *
 * The number of clients is bounded (`TwoGenerations`). An entry that is dropped too early costs one more round trip to Redis.
 */
export class OverLimitCache {
  readonly #known: TwoGenerations<Policy, Entry>
  readonly #now: () => number
  readonly #wallNow: () => number
  /** When a client was last forgotten. A refusal that was requested before then may be older than the reset of that client. */
  #forgottenAtMs = -Infinity
  /** When requests of a client were last given back, by counter. */
  readonly #gaveBackAtMs = new Map<string, number>()

  /**
   * @param maxEntries maximum number of clients, at least 2
   * @param now milliseconds of a monotonic clock
   * @param wallNow the time of day, in milliseconds since 1970
   */
  constructor(maxEntries: number, now: () => number, wallNow: () => number = Date.now) {
    this.#known = new TwoGenerations(maxEntries)
    this.#now = now
    this.#wallNow = wallNow
  }

  /** The refusal, if one of the charges is known to be over the limit of an enforced policy; otherwise undefined. */
  findRefusal(charges: readonly Charge[]): Decision | undefined {
    if (this.#known.size === 0) return undefined
    for (const charge of charges) {
      const entry = this.#known.find(charge.policy, charge.partitionKey)
      const refusal = entry && this.#refusalOf(entry, charge.policy, charges)
      if (refusal) return refusal
    }
    return undefined
  }

  /**
   * Milliseconds until a client that is over the limit of a policy has requests left; undefined for any other client.
   */
  findOverLimit({ policy, partitionKey }: Charge): number | undefined {
    const leftMs = (this.#known.find(policy, partitionKey)?.endsAtMs ?? -Infinity) - this.#now()
    return leftMs > 0 ? leftMs : undefined
  }

  /**
   * Records a refusal by the shared counters until its window ends, but for no longer than `knownForMs`.
   * `askedAtMs` is earlier than the instant that the states refer to.
   */
  record(
    charges: readonly Charge[],
    { refusedBy, states }: Decision & { outcome: 'refused' },
    askedAtMs: number,
    knownForMs: number,
  ): void {
    if (askedAtMs <= this.#forgottenAtMs || mayPassSooner(refusedBy)) return
    const refusing = states.findIndex(({ policy, exceeded }) => exceeded && policy === refusedBy)
    const counted = chargesOfStates(charges, states)
    const charge = counted[refusing]
    const state = states[refusing]
    if (!charge || !state) return
    if (askedAtMs <= (this.#gaveBackAtMs.get(counterOf(charge)) ?? -Infinity)) return
    // A request for a single unit may still fit.
    if ((charge.units ?? 1) > 1) return
    // Counted from when the store was asked, which is before it answered, so that the entry is never kept a millisecond too long.
    const endsAtMs = askedAtMs + Math.min(state.resetMs, knownForMs)
    this.#known.makeRoom(this.#now())
    const policies = charges.map(({ policy }) => policy)
    const asked = policies.some((policy) => policy.plans) ? policies : undefined
    const keys = counted.length > 1 ? counted.map(({ partitionKey }) => partitionKey) : undefined
    this.#known.set(refusedBy, charge.partitionKey, { askedAtMs, endsAtMs, states, keys, asked })
  }

  /**
   * Forgets a client under the policy of this name, or under all policies, so that the shared counters are asked again. A refusal
   * that was requested before is no longer recorded.
   */
  forget(policyName: string | undefined, partitionKey: string): void {
    this.#forgottenAtMs = this.#now()
    this.#known.deleteKey(({ name }) => policyName === undefined || name === policyName, partitionKey)
  }

  /**
   * Forgets that a client is over the limit of a policy, as requests were given back to its counter. A refusal of this client that was
   * requested before is no longer recorded. Those of others are, because a Redis that answers late must not be asked even more.
   */
  gaveBack(charge: Charge): void {
    const nowMs = this.#now()
    if (this.#gaveBackAtMs.size >= MAX_GIVEN_BACK) {
      this.#gaveBackAtMs.clear()
      this.#forgottenAtMs = nowMs
    }
    this.#gaveBackAtMs.set(counterOf(charge), nowMs)
    const { policy, partitionKey } = charge
    this.#known.deleteKey(({ name }) => name === policy.name, partitionKey)
  }

  /** Forgets all clients. Refusals that were requested before are no longer recorded. */
  clear(): void {
    this.#forgottenAtMs = this.#now()
    this.#known.clear()
  }

  readUse(): TableUse {
    return this.#known.readUse()
  }

  /** @returns undefined if the entry has ended, or says too little about these charges */
  #refusalOf(entry: Entry, refusedBy: Policy, charges: readonly Charge[]): Decision | undefined {
    const nowMs = this.#now()
    if (entry.endsAtMs <= nowMs || !isAbout(entry, charges)) return undefined
    const others = policiesOfOthers(entry, charges)
    // The refusal does not say which of these clients are over the limit.
    if (others?.has(refusedBy)) return undefined
    const states = statesAt(entry, nowMs, this.#wallNow)
    return {
      outcome: 'refused',
      refusedBy,
      states: others ? statesWithout(others, states, charges) : states,
    }
  }
}

function counterOf({ policy, partitionKey }: Charge): string {
  return `${policy.name}\n${partitionKey}`
}

/** Whether a client over the limit may pass before the window ends: after a refund, with a lower cost, or with another plan. */
function mayPassSooner(policy: Policy): boolean {
  const readsPlan = policy.plans !== undefined && policy.plans.claim === undefined
  return isReserved(policy) || policy.cost !== undefined || readsPlan
}

/**
 * Whether the entry is about the policies of these charges. Another request of the same client may match other rules, whose states are
 * not known here.
 */
function isAbout({ states, asked }: Entry, charges: readonly Charge[]): boolean {
  if (states.length !== charges.length) return false
  if (asked) return asked.every((policy, index) => policy === charges[index]?.policy)
  return states.every(({ policy }, index) => policy === charges[index]?.policy)
}

/** Returns the policies under which these charges count other clients than the refused request did; undefined if there are none. */
function policiesOfOthers({ keys }: Entry, charges: readonly Charge[]): ReadonlySet<Policy> | undefined {
  let others: Set<Policy> | undefined
  for (const [at, key] of (keys ?? []).entries()) {
    const charge = charges[at]
    if (charge && charge.partitionKey !== key) (others ??= new Set()).add(charge.policy)
  }
  return others
}

/** Leaves out states of these policies and of plans, because `chargesOfStates` finds the charges of the rest by their policies. */
function statesWithout(
  others: ReadonlySet<Policy>,
  states: readonly PolicyState[],
  charges: readonly Charge[],
): PolicyState[] {
  return states.filter(({ policy }, at) => !others.has(policy) && policy === charges[at]?.policy)
}

/**
 * Returns the states as of now, as far as they are known here. After the end of a fixed window, the whole quota is left, and no new window
 * has begun. After `resetMs` of another algorithm, at least one more request is left; the time until the next one is not known.
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
