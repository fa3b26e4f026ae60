import { chargesOfStates, type Charge, type Decision, type Limiter, type PolicyState } from '../../limiter.ts'
import { dropUnsettledReservations } from '../memory/limiter.ts'

/**
 * Decides a request that has some counters on nodes that answer, and other counters on nodes that do not. The rules of the latter apply
 * their `onStoreError`. If they let the request pass, the nodes that answer are asked, so that their rules stay exact. If a node refuses,
 * the units counted in this process are given back. Until then, other requests may find less quota left than there is.
 *
 * @param options.asked the charges to ask Redis about, one or more
 * @param options.away the other charges, one or more
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
  if (here.outcome !== 'allowed') return withAllStates(here, away, charges)
  const there = await ask(asked)
  if (there.outcome !== 'allowed') {
    for (const { reservation } of here.states) if (reservation) settle(reservation, 0)
    return withAllStates(there, asked, charges)
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
 * Returns the refusal of one part with a state for each charge of the request, because states are matched with charges by policy, and a
 * policy may have charges in both parts. Charges of the other part were not counted, and their states say that nothing is used.
 */
function withAllStates(
  refusal: Exclude<Decision, { readonly outcome: 'allowed' }>,
  own: readonly Charge[],
  charges: readonly Charge[],
): Decision {
  if (refusal.outcome === 'unavailable') return refusal
  const counted = chargesOfStates(own, refusal.states)
  const stateOf = new Map(counted.map((charge, at) => [charge, refusal.states[at]]))
  return { ...refusal, states: charges.map((charge) => stateOf.get(charge) ?? uncountedState(charge)) }
}

function uncountedState({ policy }: Charge): PolicyState {
  return { policy, exceeded: false, remaining: policy.quota, resetMs: policy.windowMs }
}
