import type { PolicyState } from '../limiter.ts'

/**
 * One state for each policy. Where a request counted for several clients under one, that of the client with least left,
 * the one that the policy refuses first. Clients may have other quotas under a policy: its name tells it.
 *
 * @param states in the order of the charges: those of a policy side by side
 */
export function oneStateEach(states: readonly PolicyState[]): readonly PolicyState[] {
  if (!states.some(({ policy }, i) => policy.name === states[i - 1]?.policy.name)) return states
  const kept: PolicyState[] = []
  for (const state of states) {
    const last = kept.at(-1)
    if (last?.policy.name !== state.policy.name) kept.push(state)
    else if (isTighter(state, last)) kept[kept.length - 1] = state
  }
  return kept
}

/** The state that refuses a request, or would sooner. */
export function isTighter(state: PolicyState, than: PolicyState): boolean {
  if (state.exceeded !== than.exceeded) return state.exceeded
  return state.remaining === than.remaining ? state.resetMs > than.resetMs : state.remaining < than.remaining
}
