import type { PolicyState } from '../limiter.ts'
import { isTighter } from './one-state-each.ts'
import { wholeSeconds } from './whole-seconds.ts'

/**
 * `X-RateLimit-Limit`, `-Remaining` and `-Reset`, for clients that know no other: name, value, name, value… They can tell of
 * one policy only: of those that refuse the request, else of all, the one with the least left. `-Reset` is in seconds from
 * now, and left out where requests in flight are limited.
 *
 * Shadow policies are left out, as in the headers of the draft.
 */
export function xRateLimitHeaders(states: readonly PolicyState[]): string[] {
  let tightest: PolicyState | undefined
  for (const state of states) {
    if (state.policy.mode === 'shadow') continue
    if (tightest === undefined || isTighter(state, tightest)) tightest = state
  }
  if (tightest === undefined) return []
  const { policy, remaining, resetMs } = tightest
  const headers = ['x-ratelimit-limit', String(policy.quota), 'x-ratelimit-remaining', String(remaining)]
  if (policy.algorithm !== 'concurrency') headers.push('x-ratelimit-reset', wholeSeconds(resetMs))
  return headers
}
