import { errors } from '../../shared/error-replies.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { sendError } from '../http/reply.ts'
import type { PolicyState } from '../limiter/limiter.ts'
import type { LimitHeaders } from './limit-headers/limit-headers.ts'
import { retryAfterHeader } from './limit-headers/ratelimit-headers.ts'

/** Answers a request that is over a limit: 429, when to come back, and what the limits are. */
export function refuse(
  request: ClientRequest,
  response: ClientResponse,
  states: readonly PolicyState[],
  limitHeaders: LimitHeaders,
): void {
  sendError(request, response, errors.tooManyRequests, [
    'retry-after',
    retryAfterHeader(states),
    'cache-control',
    'no-store',
    ...limitHeaders(states),
  ])
}

/** Answers a request whose rules could not be asked and are not to be passed over (`onStoreError: closed`). */
export function refuseUndecided(request: ClientRequest, response: ClientResponse): void {
  sendError(request, response, errors.limiterUnavailable, ['retry-after', '1', 'cache-control', 'no-store'])
}
