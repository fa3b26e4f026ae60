import { readsStoredPlan } from '../../policy/plans.ts'
import { takesUnits } from '../algorithms/registry.ts'
import { chargesOfStates, type Charge, type Decision, type Ticket } from '../limiter.ts'
import { withStoredPlan } from '../plans/stored-plans.ts'
import { isTicket, readDecision, readPlanNames, readTickets } from './store-replies.ts'

/** A charge that the store has counted, according to an answer that came after its request had been decided without it. */
export type LateAnswer = {
  readonly charge: Charge
  /** Milliseconds that were left of the window when the charge was counted. */
  readonly leftMs: number
  /** The instant at which the charge was counted, if the reply states it. */
  readonly countedAt: unknown
  /** The ticket of the reservation; undefined if nothing is reserved under the policy. */
  readonly ticket: Ticket | undefined
  /**
   * How the charge was decided meanwhile. `admitted`: admitted and not counted in this process, so the store's count is right. `counted`:
   * admitted and counted in this process as well. `refused`: refused, so it must not be counted anywhere.
   */
  readonly meanwhile: 'admitted' | 'counted' | 'refused'
}

/**
 * Returns the charges of a batch that the store has counted, according to an answer that came after the deadline. Without an answer,
 * it is unknown whether they were counted.
 *
 * @param batch.decidedWithout the decisions that were made without the store, by request
 */
export function readLateAnswers(
  batch: {
    readonly requests: readonly (readonly Charge[])[]
    readonly decidedWithout: readonly Decision[]
    readonly chargeCount: number
  },
  reply: readonly unknown[],
): LateAnswer[] {
  const { requests, decidedWithout, chargeCount } = batch
  const answers: LateAnswer[] = []
  const tickets = readTickets(chargeCount, reply)
  const ticketsAgain = readTickets(chargeCount, reply)
  const plans = readPlanNames(reply)
  const plansAgain = readPlanNames(reply)
  const countedAt = reply[2 * chargeCount]
  let at = 0
  for (const [index, charges] of requests.entries()) {
    const decision = readDecision(charges, reply, at, tickets, plans)
    const isCounted = typeof decision !== 'string' && decision.outcome === 'allowed'
    const meanwhile = outcomeOf(charges, decidedWithout[index])
    for (const charge of charges) {
      const left = Number(reply[at])
      const leftMs = Number(reply[at + 1])
      const ticket = ticketsAgain && takesUnits(charge.policy) ? ticketsAgain.next().value : undefined
      const plan = plansAgain && readsStoredPlan(charge.policy) ? plansAgain.next().value : undefined
      at += 2
      if (isCounted && left >= 0)
        answers.push({
          charge: plan === undefined ? charge : withStoredPlan(charge, plan),
          leftMs,
          countedAt,
          ticket: isTicket(ticket) ? ticket : undefined,
          meanwhile: meanwhile(charge),
        })
    }
  }
  return answers
}

function outcomeOf(
  charges: readonly Charge[],
  decision: Decision | undefined,
): (charge: Charge) => LateAnswer['meanwhile'] {
  if (decision?.outcome !== 'allowed') return () => 'refused'
  const { states } = decision
  const counted = new Set(chargesOfStates(charges, states).filter((_, i) => states[i]?.exceeded === false))
  return (charge) => (counted.has(charge) ? 'counted' : 'admitted')
}
