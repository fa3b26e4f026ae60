import type { Policy } from '../../../policy.ts'
import { chargesOfStates, type Charge, type Decision, type Limiter } from '../../limiter.ts'
import { dropUnsettledReservations } from '../memory/limiter.ts'

/**
 * Decides a request some of whose counters are on nodes that answer, and others on nodes that do not. The latter apply their
 * `onStoreError`, and if that lets it pass the former are asked, so that these rules stay exact. Where they refuse, the units counted
 * in this process are given back: until then other requests may find less left than there is.
 *
 * @param options.asked the charges to ask Redis about, one or more
 * @param options.away the others, one or more
 * @param options.reserveWithout decides without Redis; all states have reservations
 */
export async function decidePartly(options: {
  readonly charges: readonly Charge[]
  readonly asked: readonly Charge[]
  readonly away: readonly Charge[]
  readonly ask: Limiter['decide']
  readonly settle: Limiter['settle']
  readonly reserveWithout: (charges: readonly Charge[]) => Decision
}): Promise<Decision> {
  const { charges, asked, away, ask, settle, reserveWithout } = options
  const here = reserveWithout(away)
  if (here.outcome !== 'allowed') return withoutSplitPolicies(here, away, asked)
  const there = await ask(asked)
  if (there.outcome !== 'allowed') {
    for (const { reservation } of here.states) if (reservation) settle(reservation, 0)
    return withoutSplitPolicies(there, asked, away)
  }
  const counted = [...chargesOfStates(asked, there.states), ...chargesOfStates(away, here.states)]
  const states = [...there.states, ...here.states]
  const stateOf = new Map(counted.map((charge, at) => [charge, states[at]]))
  return dropUnsettledReservations({
    ...there,
    states: charges.flatMap((charge) => stateOf.get(charge) ?? []),
    withoutStore: true,
  })
}

/**
 * A decision about some of the charges, without the states of policies under which the request counts for other clients as well: it is by
 * their policies that states are matched with the charges of the whole request, and a ban must not be for one of the others.
 */
function withoutSplitPolicies(
  decision: Decision,
  own: readonly Charge[],
  others: readonly Charge[],
): Decision {
  if (decision.outcome === 'unavailable') return decision
  const split = new Set<Policy | undefined>(others.map(({ policy }) => policy))
  if (!own.some(({ policy }) => split.has(policy))) return decision
  const counted = chargesOfStates(own, decision.states)
  return { ...decision, states: decision.states.filter((_, at) => !split.has(counted[at]?.policy)) }
}
