import { errors } from '../../../shared/error-replies.ts'
import type { ExplainedBan } from '../../limits/explain/bans.ts'
import type { ExplainedRule } from '../../limits/explain/explain-rule.ts'
import { writeHead, type ExplainedRequest } from '../../limits/explain/request-text.ts'
import { unitsOf, type Charge } from '../../limits/limiter.ts'
import { maxDelayMs, overRouteOf, policiesOf, refusesOver, withoutDelay, type Rule } from '../../policy.ts'
import { toSeconds } from './api-values.ts'
import type { ApiRoutes } from './api.ts'
import { withPlan } from '../../limits/algorithms/registry.ts'
import type { ClientOperations, ClientState } from '../client-operations.ts'
import { describeState } from './client-state.ts'
import { withBody, type Asked } from './read-body.ts'

/**
 * The API that explains what the gateway would do with a request now. docs/operations.md describes the format. Counts nothing.
 *
 * @param options.rules the current rules; empty if rate limiting is disabled
 * @param options.upstreamHost the host for a request that does not name one
 */
export function createExplainRoutes(options: {
  readonly rules: readonly Rule[]
  readonly upstreamHost: string
  readonly clients: Pick<ClientOperations, 'explain' | 'inspect'>
}): ApiRoutes {
  const { rules, upstreamHost, clients } = options
  const policies = policiesOf(rules)

  /** Returns a charge for each key by which a rule counts the request. A table that has just changed may no longer have the rule. */
  function chargesOf({ name, override, plan, keys, units }: ExplainedRule): Charge[] {
    const written = override === undefined ? undefined : override - 1
    const found = policies.find((each) => each.name === name && each.override === written)
    const policy = found && plan !== undefined ? withPlan(found, plan) : found
    return policy ? keys.map((partitionKey, at) => ({ policy, partitionKey, units: units[at] ?? 1 })) : []
  }

  async function explain({ ip, headers, ...line }: Asked<'explained'>): Promise<object> {
    const asked: ExplainedRequest = { ...line, headers: linesOf(headers) }
    const explanation = await clients.explain({ head: writeHead(asked, upstreamHost), ip, body: asked.body })
    if (!explanation) return errors.explainUnanswered
    const charges = explanation.rules.flatMap(chargesOf)
    const states = charges.length === 0 ? [] : await clients.inspect(charges)
    const { ban, rules: explained, ...about } = explanation
    const full = new Set(explanation.rules.flatMap(({ name, waitingFull }) => (waitingFull ? [name] : [])))
    const chargeAt = (at: number): Charge | undefined => {
      const charge = charges[at]
      return charge && full.has(charge.policy.name)
        ? { ...charge, policy: withoutDelay(charge.policy) }
        : charge
    }
    const exceeding = states.find((state, at) => refuses(state, chargeAt(at)))
    const routing = states.find((state, at) => routes(state, charges[at]))
    return {
      ...about,
      ...(ban && { ban: describeBan(ban) }),
      refusedBy: exceeding?.policy.name ?? null,
      routedBy: (!exceeding && routing?.policy.name) || null,
      rules: explained.map((rule) => ({
        ...rule,
        units: charges.flatMap((charge, at) => {
          const quota = states[at]?.quota
          return rule.counts && charge.policy.name === rule.name ? [unitsUnder(charge, quota)] : []
        }),
        states: states.flatMap((state, at) => {
          const charge = charges[at]
          return rule.counts && charge?.policy.name === rule.name
            ? [describeState(state, charge.partitionKey, unitsUnder(charge, state.quota))]
            : []
        }),
      })),
    }
  }

  return new Map([['/api/explain', { POST: withBody('explained', explain) }]])
}

function linesOf(
  headers: Readonly<Record<string, string | readonly string[]>>,
): (readonly [string, string])[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    (typeof value === 'string' ? [value] : value).map((each) => [name, each] as const),
  )
}

/** Whether a request with this charge would be refused now. */
function refuses(state: ClientState, charge: Charge | undefined): boolean {
  if (!charge || charge.policy.mode === 'shadow') return false
  const { policy } = charge
  if (state.used === undefined) return state.source === 'none' && policy.onStoreError === 'closed'
  return refusesOver(policy) && isOver(state, charge)
}

/** Whether a request with this charge would be sent to another route now. */
function routes(state: ClientState, charge: Charge | undefined): boolean {
  return charge !== undefined && overRouteOf(charge.policy) !== undefined && isOver(state, charge)
}

function isOver({ quota, used = 0, resetMs = 0 }: ClientState, charge: Charge): boolean {
  const { policy } = charge
  const units = unitsUnder(charge, quota)
  if (used + units <= quota) return false
  // The request waits after all requests that are already waiting, unless that takes too long.
  const unitsAfterReset = units - (quota - used) - 1
  const delayMs = maxDelayMs(policy)
  return delayMs === 0 || resetMs + (unitsAfterReset * policy.windowMs) / quota > delayMs
}

/** The units that a request takes from a client that has this quota. */
function unitsUnder(charge: Charge, quota = charge.policy.quota): number {
  return unitsOf({ ...charge, policy: { ...charge.policy, quota } })
}

function describeBan({ leftMs, ...ban }: ExplainedBan): object {
  return { ...ban, expiresSeconds: toSeconds(leftMs) }
}
