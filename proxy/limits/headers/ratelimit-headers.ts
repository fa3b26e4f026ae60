import type { Policy } from '../../policy.ts'
import type { PolicyState } from '../limiter.ts'
import { wholeSeconds } from './whole-seconds.ts'

/**
 * The response fields of draft-ietf-httpapi-ratelimit-headers-11: structured-field Lists of String items. The one place
 * that writes them, because the draft may yet turn the String into a Token.
 *
 * Shadow policies are left out: a client that heeds the fields would slow down for a limit that is not in force.
 */

/** `RateLimit-Policy`: quota and window (whole seconds) of each policy, or undefined where none is enforced. */
export function rateLimitPolicyHeader(states: readonly PolicyState[]): string | undefined {
  let list: string | undefined
  for (const { policy } of states) {
    if (policy.mode === 'shadow') continue
    const item = policyItem(policy)
    list = list === undefined ? item : `${list}, ${item}`
  }
  return list
}

/**
 * `RateLimit`: the remaining quota under each policy, and the seconds until more is left, rounded up: the effective window of
 * section 4.1.2, within which the client can use no more than the remaining quota.
 */
export function rateLimitHeader(states: readonly PolicyState[]): string | undefined {
  let list: string | undefined
  for (const { policy, remaining, resetMs } of states) {
    if (policy.mode === 'shadow') continue
    // Nobody knows when a request in flight ends.
    const reset = policy.algorithm === 'concurrency' ? '' : `;t=${wholeSeconds(resetMs)}`
    const item = `"${policy.name}";r=${remaining}${reset}`
    list = list === undefined ? item : `${list}, ${item}`
  }
  return list
}

/** `Retry-After` in whole seconds, rounded up: when every exhausted policy lets the client through again. */
export function retryAfterHeader(states: readonly PolicyState[]): string {
  let maxMs = 0
  for (const { policy, exceeded, resetMs } of states) {
    if (exceeded && policy.mode === 'enforce' && resetMs > maxMs) maxMs = resetMs
  }
  return wholeSeconds(maxMs)
}

const policyItems = new WeakMap<Policy, string>()

/** Made once for each policy: it never changes. Names need no escaping, the settings allow only `[A-Za-z0-9._-]`. */
function policyItem(policy: Policy): string {
  const known = policyItems.get(policy)
  if (known !== undefined) return known
  const window = policy.algorithm === 'concurrency' ? '' : `;w=${wholeSeconds(policy.windowMs)}`
  const item = `"${policy.name}";q=${policy.quota}${window}`
  policyItems.set(policy, item)
  return item
}
