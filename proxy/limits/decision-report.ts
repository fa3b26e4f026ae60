import type { Charge, Decision } from './limiter.ts'
import type { Policy } from '../policy.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { oneStateEach } from './headers/one-state-each.ts'

/**
 * Reports how each policy of a request ended.
 *
 * @returns the names of the policies in shadow that would have refused the request; undefined if there is no such policy
 */
export function reportDecision(
  telemetry: Pick<Telemetry, 'decided' | 'nearLimit'>,
  decision: Decision,
  charges: readonly Charge[],
): string[] | undefined {
  let shadows: string[] | undefined
  switch (decision.outcome) {
    case 'allowed':
      for (const { policy, exceeded, remaining } of oneStateEach(decision.states)) {
        if (exceeded) (shadows ??= []).push(policy.name)
        else if (remaining * 5 < policy.quota) telemetry.nearLimit(policy)
        telemetry.decided(policy, exceeded ? 'shadow' : decision.withoutStore ? 'local' : 'allowed')
      }
      if (decision.states.length < charges.length) reportUncounted(telemetry, decision, charges)
      break
    case 'refused':
      telemetry.decided(decision.refusedBy, 'refused')
      break
    case 'unavailable':
      for (const policy of policiesOf(charges)) telemetry.decided(policy, 'unavailable')
  }
  return shadows
}

/** Policies without a state allowed the request without counting it. */
function reportUncounted(
  telemetry: Pick<Telemetry, 'decided'>,
  { states }: Decision & { outcome: 'allowed' },
  charges: readonly Charge[],
): void {
  const counted = new Set<Policy>(states.map(({ policy }) => policy))
  for (const policy of policiesOf(charges)) if (!counted.has(policy)) telemetry.decided(policy, 'open')
}

function policiesOf(charges: readonly Charge[]): ReadonlySet<Policy> {
  return new Set(charges.map(({ policy }) => policy))
}
