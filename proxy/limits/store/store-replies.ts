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

/* Reads the reply to a batch. `RemoteCounters.ask` describes its contents. */

/** Returns an iterator over the tickets in a reply. */
export function readTickets(
  chargeCount: number,
  reply: readonly unknown[],
): Iterator<unknown, undefined> | undefined {
  const start = 2 * chargeCount + 1
  return reply.length > start ? reply.slice(start).values() : undefined
}

/** Returns an iterator over the plan names in a reply, one for each charge that reads a plan. */
export function readPlanNames(reply: readonly unknown[]): IteratorObject<unknown, undefined> | undefined {
  const last: unknown = reply.at(-1)
  return Array.isArray(last) ? last.values() : undefined
}

/** Returns the decision that the store's values from `start` on represent, or the reason why the store could not decide. */
export function readDecision(
  charges: readonly Charge[],
  reply: readonly unknown[],
  start: number,
  tickets: Iterator<unknown, undefined> | undefined,
  plans?: Iterator<unknown, undefined>,
): Exclude<Decision, { outcome: 'unavailable' }> | string {
  const states: PolicyState[] = []
  let refusedBy: Policy | undefined
  let failure: string | undefined
  let at = start
  for (const asked of charges) {
    const plan = plans && readsStoredPlan(asked.policy) ? plans.next().value : undefined
    const charge = plan === undefined ? asked : withStoredPlan(asked, plan)
    const { policy } = charge
    const left = reply[at]
    const resetMs = reply[at + 1]
    const ticket = tickets && takesUnits(policy) ? tickets.next().value : undefined
    at += 2
    if (typeof left !== 'number' || typeof resetMs !== 'number') {
      failure ??= String(left)
      continue
    }
    const exceeded = left < 0
    if (exceeded && refusesOver(policy)) refusedBy ??= policy
    const remaining = exceeded ? -1 - left : left
    const isToSettle = isTicket(ticket) && !exceeded && isReserved(policy)
    const state: PolicyState = isToSettle
      ? { policy, exceeded, remaining, resetMs, reservation: reservationOf(charge, ticket) }
      : { policy, exceeded, remaining, resetMs }
    states.push(plan !== undefined && isUnknownPlan(policy, plan) ? { ...state, isPlanUnknown: true } : state)
  }
  if (failure !== undefined) return failure
  if (!refusedBy) return { outcome: 'allowed', states }
  return { outcome: 'refused', refusedBy, states: tickets ? states.map(withoutReservation) : states }
}

/** Whether a value in a reply can be a ticket. */
export function isTicket(value: unknown): value is Ticket {
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
