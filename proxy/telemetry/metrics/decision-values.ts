import type { PolicyCounters } from './policy-counters.ts'
import type { MetricValue } from './prometheus.ts'

/**
 * Up to this number of policies, each policy is listed from the start with its outcomes at 0, as Prometheus recommends: `increase()` does
 * not see a rise from nothing to 1. With more policies, only values above 0 are listed, because a scrape blocks requests: with a thousand
 * policies at 0, for 25 ms.
 */
const POLICIES_LISTED_AT_ZERO = 250

/** The outcomes of the requests that a policy applied to. */
export function decisionValues({ decisions }: Pick<PolicyCounters, 'decisions'>): MetricValue[] {
  return byPolicy(Array.from(decisions, ([policy, outcomes]) => [policy, Object.entries(outcomes)]))
}

/**
 * Requests by how much of the limit the client had used: `within` and `near` for counted requests, `over` for requests over the limit.
 * Requests that no store could count are left out.
 */
export function usageValues({
  decisions,
  nearLimits,
}: Pick<PolicyCounters, 'decisions' | 'nearLimits'>): MetricValue[] {
  return byPolicy(
    Array.from(decisions, ([policy, { allowed, local, refused, shadow, routed }]) => {
      const near = nearLimits.get(policy) ?? 0
      const usage: [string, number][] = [
        ['within', allowed + local - near],
        ['near', near],
        ['over', refused + shadow + routed],
      ]
      return [policy, usage]
    }),
  )
}

function byPolicy(
  counted: readonly (readonly [policy: string, outcomes: [string, number][]])[],
): MetricValue[] {
  const listZeros = counted.length <= POLICIES_LISTED_AT_ZERO
  const values: MetricValue[] = []
  for (const [policy, outcomes] of counted) {
    for (const [outcome, value] of outcomes) {
      if (listZeros || value > 0) values.push({ labels: { policy, outcome }, value })
    }
  }
  return values
}
