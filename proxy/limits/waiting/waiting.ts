import { maxDelayMs, withoutDelay, type Policy } from '../../policy.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { withPlan } from '../algorithms/registry.ts'
import type { Charge, Decision, Limiter, PolicyState, Reservation, Turn } from '../limiter.ts'
import { delayMsOf } from './delay-of.ts'
import { Places, type Place } from './places.ts'
import { TurnQueue, type Waiter } from './turn-queue.ts'

/** A turn that the store has reserved. */
type Reserved = { readonly charge: Charge; readonly reservation: Reservation; readonly delayMs: number }

/**
 * Makes requests wait for their turn, under rules with `over: { delay }`. The counters schedule the turns across all replicas: they let a
 * bucket be overdrawn by as much as it refills within `delay`, so the one answer that counts a request also contains its turn. This class
 * does the waiting.
 *
 * A request takes its places before it is decided. It leaves them when it turns out not to wait, when its turn has come, or when its
 * client has disconnected.
 */
export class Waiting {
  readonly #places = new Places()
  /** Keyed by policy and partition key. A queue exists only while requests wait in it. */
  readonly #queues = new Map<string, TurnQueue>()
  readonly #now: () => number
  readonly #telemetry: Pick<Telemetry, 'delayed' | 'observeTable'>

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number, telemetry: Pick<Telemetry, 'delayed' | 'observeTable'>) {
    this.#now = now
    this.#telemetry = telemetry
    telemetry.observeTable('waiting', () => this.#places.readUse())
  }

  /** Whether this process has a place where a request with this charge could wait; true if requests do not wait under the policy. */
  readonly hasPlace = (charge: Charge): boolean => {
    const place = placeOf(charge)
    return !place || this.#places.hasPlace(place)
  }

  /** Returns a limiter whose decisions have a `turn` if the request has to wait. */
  delaying(limiter: Limiter): Limiter {
    return {
      decide: (charges) => {
        if (!charges.some(({ policy }) => maxDelayMs(policy) > 0)) return limiter.decide(charges)
        const { asked, taken } = this.#takePlaces(charges)
        const decision = limiter.decide(asked)
        return decision instanceof Promise
          ? decision.then((later) => this.#decided(charges, taken, later, limiter))
          : this.#decided(charges, taken, decision, limiter)
      },
      settle: (reservation, costUnits) => limiter.settle(reservation, costUnits),
    }
  }

  /** Takes a place for each charge that may have to wait. If a rule has no place left, the request may pass but not wait. */
  #takePlaces(charges: readonly Charge[]): { asked: readonly Charge[]; taken: readonly Charge[] } {
    const taken: Charge[] = []
    const asked = charges.map((charge) => {
      const place = placeOf(charge)
      if (!place) return charge
      if (!this.#places.take(place)) return { ...charge, policy: withoutDelay(charge.policy) }
      taken.push(charge)
      return charge
    })
    return { asked, taken }
  }

  #leavePlaces(taken: readonly Charge[]): void {
    for (const { policy, partitionKey } of taken) this.#places.leave({ rule: policy.name, key: partitionKey })
  }

  /** @param taken the charges that hold places */
  #decided(
    charges: readonly Charge[],
    taken: readonly Charge[],
    decision: Decision,
    limiter: Limiter,
  ): Decision {
    if (decision.outcome === 'unavailable') {
      this.#leavePlaces(taken)
      return decision
    }
    const asWritten = writtenPolicies(charges)
    const states = decision.states.map((state) => withoutTurn(state, asWritten(state.policy)))
    if (decision.outcome === 'refused') {
      this.#leavePlaces(taken)
      return { ...decision, states, refusedBy: asWritten(decision.refusedBy) }
    }
    const [first, ...others] = decision.states.flatMap(reservedBy).toSorted((a, b) => b.delayMs - a.delayMs)
    if (first) return { ...decision, states, turn: this.#turnOf(first, others, taken, limiter) }
    this.#leavePlaces(taken)
    return { ...decision, states }
  }

  /** @param taken the charges that hold places, which they leave when the wait is over */
  #turnOf(first: Reserved, others: readonly Reserved[], taken: readonly Charge[], limiter: Limiter): Turn {
    const decidedAtMs = this.#now()
    const queue = this.#queueOf(first.charge, limiter)
    let onTurn: ((waitedMs: number) => void) | undefined
    const waiter: Waiter = {
      notBeforeMs: decidedAtMs + Math.max(0, ...others.map(({ delayMs }) => delayMs)),
      onTurn: () => {
        this.#leavePlaces(taken)
        const waitedMs = this.#now() - decidedAtMs
        this.#telemetry.delayed(first.charge.policy, waitedMs)
        onTurn?.(waitedMs)
      },
    }
    queue.add(waiter, { dueMs: decidedAtMs + first.delayMs, reservation: first.reservation })
    return {
      wait: (callback) => void (onTurn = callback),
      leave: () => {
        this.#leavePlaces(taken)
        queue.remove(waiter)
        for (const { reservation } of others) limiter.settle(reservation, 0)
      },
    }
  }

  #queueOf({ policy, partitionKey }: Charge, limiter: Limiter): TurnQueue {
    const name = `${policy.name} ${partitionKey}`
    const known = this.#queues.get(name)
    if (known) return known
    const made = new TurnQueue(limiter, this.#now, () => this.#queues.delete(name))
    this.#queues.set(name, made)
    return made
  }
}

/** Maps the policy of a decision back to the policy of its charge. Restores a delay that was removed; keeps the client's plan. */
function writtenPolicies(charges: readonly Charge[]): (decided: Policy) => Policy {
  const written = new Map(charges.map(({ policy }) => [withoutDelay(policy), policy]))
  return (decided) => {
    const { plan } = decided
    if (plan === undefined || written.has(decided)) return written.get(decided) ?? decided
    // The counters looked up the plan, so `decided` is a variant of a policy they were given.
    for (const [asked, before] of written)
      if (withPlan(asked, plan) === decided) return withPlan(before, plan)
    return decided
  }
}

/** Returns the place for a request with this charge; undefined if requests do not wait under the rule. */
function placeOf({ policy, partitionKey }: Charge): Place | undefined {
  const { over, mode, name, partition } = policy
  if (mode === 'shadow' || !over || !('waiting' in over)) return undefined
  const isShared = partition.some(({ kind }) => kind === 'global')
  return { rule: name, key: partitionKey, max: over.waiting, isShared }
}

function reservedBy(state: PolicyState): Reserved[] {
  const { reservation } = state
  const delayMs = delayMsOf(state)
  return reservation && delayMs > 0 ? [{ charge: reservation.charge, reservation, delayMs }] : []
}

/** Returns the state under the table's policy, without the reservation: a turn that has come is final, so no response settles it. */
function withoutTurn(state: PolicyState, policy: Policy): PolicyState {
  if (maxDelayMs(policy) === 0) return state
  const { exceeded, remaining, resetMs, isPlanUnknown } = state
  return { policy, exceeded, remaining, resetMs, ...(isPlanUnknown && { isPlanUnknown }) }
}
