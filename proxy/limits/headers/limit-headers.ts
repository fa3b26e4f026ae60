import type { PolicyState } from '../limiter.ts'
import { oneStateEach } from './one-state-each.ts'
import { rateLimitHeader, rateLimitPolicyHeader } from './ratelimit-headers.ts'
import { xRateLimitHeaders } from './x-ratelimit-headers.ts'

/** A form in which clients are told their limits. */
type LimitHeaderFormat = 'ietf' | 'x-ratelimit'

/** Makes the headers with the remaining quota, for a response on a limited endpoint, allowed or refused: name, value, name, value… */
export type LimitHeaders = (states: readonly PolicyState[]) => string[]

/** Makes the headers in each of these formats; none without a format. */
export function createLimitHeaders(formats: readonly LimitHeaderFormat[]): LimitHeaders {
  const [first, second] = new Set(formats)
  if (first === undefined) return () => []
  if (second === undefined) return makers[first]
  return (states) => [...ietfHeaders(states), ...xRateLimitHeaders(states)]
}

/** The names of these headers, as people write them. */
export function limitHeaderNames(formats: readonly LimitHeaderFormat[]): string[] {
  return formats.flatMap((format) => names[format])
}

const names: Readonly<Record<LimitHeaderFormat, readonly string[]>> = {
  ietf: ['RateLimit-Policy', 'RateLimit'],
  'x-ratelimit': ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
}

const makers: Readonly<Record<LimitHeaderFormat, LimitHeaders>> = {
  ietf: ietfHeaders,
  'x-ratelimit': xRateLimitHeaders,
}

function ietfHeaders(states: readonly PolicyState[]): string[] {
  const shown = oneStateEach(states)
  const policies = rateLimitPolicyHeader(shown)
  const limits = rateLimitHeader(shown)
  return policies === undefined || limits === undefined
    ? []
    : ['ratelimit-policy', policies, 'ratelimit', limits]
}
