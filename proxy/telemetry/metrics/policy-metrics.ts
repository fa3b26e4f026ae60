import { counter, histogram } from './metric.ts'
import type { PolicyCounters } from './policy-counters.ts'
import { byPolicy, isListed } from './policy-values.ts'
import type { Metric } from './prometheus.ts'

/** Returns the metrics of rules. */
export function describePolicies(policies: PolicyCounters): Metric[] {
  return [
    counter(
      'sluice_decisions_total',
      'Rate limit decisions, by policy and outcome',
      byPolicy('outcome', policies.decisions),
    ),
    counter(
      'sluice_limited_requests_total',
      'Requests that a rule counted or refused, by policy and how much of the limit was used: within, near (over 80 %), over',
      byPolicy('outcome', usageOf(policies)),
    ),
    histogram(
      'sluice_delay_seconds',
      'Time that requests over a limit waited for their turn (over: { delay }), by policy',
      ...[...policies.delays]
        .filter(([, duration], index) => isListed(index, duration.count()))
        .map(([policy, duration]) => ({ labels: { policy }, duration })),
    ),
    counter(
      'sluice_unreadable_costs_total',
      'Responses that did not state the cost of their request (cost.settle), by policy and reason',
      byPolicy('reason', policies.unreadCosts),
    ),
    counter(
      'sluice_unread_reserves_total',
      'Requests that did not say how much to reserve (cost.reserve), by policy and reason',
      byPolicy('reason', policies.unreadReserves),
    ),
    counter(
      'sluice_unread_keys_total',
      'Requests that were counted by address, since their body does not say for whom (key: body), by policy and reason',
      byPolicy('reason', policies.unreadKeys),
    ),
    counter(
      'sluice_bans_total',
      'Clients banned by a rule (ban), by policy',
      [...policies.bans]
        .filter(([, value], index) => isListed(index, value))
        .map(([policy, value]) => ({ labels: { policy }, value })),
    ),
    counter(
      'sluice_devices_total',
      'Requests under rules with device, by policy and by whether their device is known for their account, and cookies issued',
      byPolicy('event', policies.devices),
    ),
    counter(
      'sluice_plan_requests_total',
      'Requests under rules with plans, by policy and plan: none without a plan, unknown for one that the rule does not have',
      byPolicy('plan', policies.plans),
    ),
    counter(
      'sluice_leased_units_total',
      'Units of rules with lease: taken ahead from Redis, used by requests without asking it, returned unused',
      byPolicy('change', policies.leases),
    ),
  ]
}

/**
 * Requests by how much of the limit the client had used: `within` and `near` for counted requests, `over` for requests over the limit.
 * Requests that no store could count are left out.
 */
function* usageOf({
  decisions,
  nearLimits,
}: Pick<PolicyCounters, 'decisions' | 'nearLimits'>): Generator<[string, Record<string, number>]> {
  for (const [policy, { allowed, local, refused, shadow, routed }] of decisions) {
    const near = nearLimits.get(policy) ?? 0
    yield [policy, { within: allowed + local - near, near, over: refused + shadow + routed }]
  }
}
