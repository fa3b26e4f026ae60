import type { Charge, Decision, Limiter, Reservation } from '../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { chargeAll } from './charges.ts'

/** Asks the given limiters in turn, `times` times at once, and waits for all answers. */
export async function decideAtOnce(
  limiters: readonly Limiter[],
  times: number,
  charges: readonly Charge[],
): Promise<Decision[]> {
  const answers: Promise<Decision>[] = []
  for (let asked = 0; asked < times; asked++) {
    const limiter = limiters[asked % limiters.length]
    if (limiter) answers.push(Promise.resolve(limiter.decide(charges)))
  }
  return Promise.all(answers)
}

/** Asks for all the clients in the same turn of the event loop, and waits for all answers. */
export function decideForEach(
  limiter: Limiter,
  clients: readonly string[],
  policies: readonly Policy[],
): Promise<Decision[]> {
  return Promise.all(clients.map(async (client) => limiter.decide(chargeAll(client, policies))))
}

export function countAllowed(decisions: readonly Decision[]): number {
  return decisions.filter(({ outcome }) => outcome === 'allowed').length
}

export function reservationsOf(decision: Decision | undefined): Reservation[] {
  if (decision?.outcome !== 'allowed') return []
  return decision.states.flatMap(({ reservation }) => (reservation ? [reservation] : []))
}
