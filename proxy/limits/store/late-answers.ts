import { chargesOfStates, type Charge, type Decision, type Ticket } from '../limiter.ts'
import { BatchReply } from './store-replies.ts'

/** A charge that the store has counted, according to an answer that came after its request had been decided without it. */
export type LateAnswer = {
  readonly charge: Charge
  /** Milliseconds that were left of the window when the charge was counted. */
  readonly leftMs: number
  /** Milliseconds since the store was asked. The charge was counted within this time. */
  readonly sinceAskedMs: number
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
 * @param sinceAskedMs milliseconds since the store was asked
 */
export function readLateAnswers(
  batch: {
    readonly requests: readonly (readonly Charge[])[]
    readonly decidedWithout: readonly Decision[]
    readonly chargeCount: number
  },
  values: readonly unknown[],
  sinceAskedMs: number,
): LateAnswer[] {
  const { requests, decidedWithout, chargeCount } = batch
  const answers: LateAnswer[] = []
  const reply = new BatchReply(values, chargeCount)
  const countedAt = values[2 * chargeCount]
  for (const [index, charges] of requests.entries()) {
    const meanwhile = outcomeOf(charges, decidedWithout[index])
    const counted: LateAnswer[] = []
    const decision = reply.readDecision(charges, (asked, { policy, exceeded, resetMs }, ticket) => {
      if (exceeded) return
      const charge = { ...asked, policy }
      counted.push({ charge, leftMs: resetMs, sinceAskedMs, countedAt, ticket, meanwhile: meanwhile(asked) })
    })
    if (typeof decision !== 'string' && decision.outcome === 'allowed') answers.push(...counted)
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
