import { errors } from '../../shared/error-replies.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { sendError } from '../http/reply.ts'
import type { PolicyState } from '../limiter/limiter.ts'
import { oneStateEach } from './one-state-each.ts'
import { rateLimitHeader, rateLimitPolicyHeader, retryAfterHeader } from './ratelimit-headers.ts'

/** The `RateLimit` fields of a response on a limited endpoint, allowed or refused: name, value, name, value… */
export function rateLimitHeaders(states: readonly PolicyState[]): string[] {
  const shown = oneStateEach(states)
  const policies = rateLimitPolicyHeader(shown)
  const limits = rateLimitHeader(shown)
  return policies === undefined || limits === undefined
    ? []
    : ['ratelimit-policy', policies, 'ratelimit', limits]
}

/** Answers a request that is over a limit: 429, when to come back, and what the limits are. */
export function refuse(
  request: ClientRequest,
  response: ClientResponse,
  states: readonly PolicyState[],
): void {
  sendError(request, response, errors.tooManyRequests, [
    'retry-after',
    retryAfterHeader(states),
    'cache-control',
    'no-store',
    ...rateLimitHeaders(states),
  ])
}

/** Answers a request whose rules could not be asked and are not to be passed over (`onStoreError: closed`). */
export function refuseUndecided(request: ClientRequest, response: ClientResponse): void {
  sendError(request, response, errors.limiterUnavailable, ['retry-after', '1', 'cache-control', 'no-store'])
}
