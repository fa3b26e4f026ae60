import { refusesOver, type Policy } from '../../policy.ts'
import { readsStoredPlan } from '../../policy/plans.ts'
import { isReserved, takesUnits } from '../algorithms/registry.ts'
import {
  unitsOf,
  type Charge,
  type Decision,
  type PolicyState,
  type Reservation,
  type Ticket,
} from '../limiter.ts'
import { isUnknownPlan, withStoredPlan } from '../plans/stored-plans.ts'

/** Returns an iterator over the plan names in a reply, one for each charge that reads a plan. */
export function readPlanNames(reply: readonly unknown[]): IteratorObject<unknown, undefined> | undefined {
  const last: unknown = reply.at(-1)
  return Array.isArray(last) ? last.values() : undefined
}

/** The reply to a batch, which `RemoteCounters.ask` describes. It is read once, request by request. */
export class BatchReply {
  readonly #values: readonly unknown[]
  readonly #tickets: Iterator<unknown, undefined> | undefined
  readonly #plans: Iterator<unknown, undefined> | undefined
  #at = 0

  /** @param chargeCount the charges of all requests of the batch */
  constructor(values: readonly unknown[], chargeCount: number) {
    const start = 2 * chargeCount + 1
    this.#values = values
    this.#tickets = values.length > start ? values.slice(start).values() : undefined
    this.#plans = readPlanNames(values)
  }

  /** Whether charges may have been reserved. */
  get hasTickets(): boolean {
    return this.#tickets !== undefined
  }

  /**
   * Returns the decision about the next request of the batch, or the reason why the store could not decide.
   *
   * @param onState called with the state of each charge, and its ticket, which charges without a reservation may have as well
   */
  readDecision(
    charges: readonly Charge[],
    onState?: (asked: Charge, state: PolicyState, ticket: Ticket | undefined) => void,
  ): Exclude<Decision, { outcome: 'unavailable' }> | string {
    const states: PolicyState[] = []
    let refusedBy: Policy | undefined
    let failure: string | undefined
    for (const asked of charges) {
      const plan = this.#plans && readsStoredPlan(asked.policy) ? this.#plans.next().value : undefined
      const charge = plan === undefined ? asked : withStoredPlan(asked, plan)
      const { policy } = charge
      const left = this.#values[this.#at]
      const resetMs = this.#values[this.#at + 1]
      const sent = this.#tickets && takesUnits(policy) ? this.#tickets.next().value : undefined
      this.#at += 2
      if (typeof left !== 'number' || typeof resetMs !== 'number') {
        failure ??= String(left)
        continue
      }
      const ticket = isTicket(sent) ? sent : undefined
      const exceeded = left < 0
      if (exceeded && refusesOver(policy)) refusedBy ??= policy
      const remaining = exceeded ? -1 - left : left
      const isToSettle = ticket !== undefined && !exceeded && isReserved(policy)
      const counted: PolicyState = isToSettle
        ? { policy, exceeded, remaining, resetMs, reservation: reservationOf(charge, ticket) }
        : { policy, exceeded, remaining, resetMs }
      const isPlanUnknown = plan !== undefined && isUnknownPlan(policy, plan)
      const state = isPlanUnknown ? { ...counted, isPlanUnknown } : counted
      states.push(state)
      onState?.(asked, state, ticket)
    }
    if (failure !== undefined) return failure
    if (!refusedBy) return { outcome: 'allowed', states }
    return {
      outcome: 'refused',
      refusedBy,
      states: this.hasTickets ? states.map(withoutReservation) : states,
    }
  }
}

function isTicket(value: unknown): value is Ticket {
  return typeof value === 'string' || typeof value === 'number'
}

function reservationOf(charge: Charge, ticket: Ticket): Reservation {
  return { charge, units: unitsOf(charge), isLocal: false, ticket }
}

/** A refused request leaves nothing counted. */
function withoutReservation({
  policy,
  exceeded,
  remaining,
  resetMs,
  isPlanUnknown,
}: PolicyState): PolicyState {
  return { policy, exceeded, remaining, resetMs, ...(isPlanUnknown && { isPlanUnknown }) }
}
