import { errors } from '../../shared/error-replies.ts'
import { prefersHtml } from '../http/accept.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { sendError } from '../http/reply.ts'
import type { Decision } from '../limiter/limiter.ts'
import type { LimitHeaders } from './limit-headers/limit-headers.ts'
import { retryAfterHeader } from './limit-headers/ratelimit-headers.ts'
import { refusalOf, type Refusals } from './refusal.ts'

type Refused = Extract<Decision, { readonly outcome: 'refused' }>

/** How refused requests are answered. */
export type RefusalOptions = {
  readonly limitHeaders: LimitHeaders
  readonly refusals: Refusals
}

/** Answers a request that is over a limit: 429 or what the settings say, when to come back, and what the limits are. */
export function refuse(
  request: ClientRequest,
  response: ClientResponse,
  { states, refusedBy }: Refused,
  { limitHeaders, refusals }: RefusalOptions,
): void {
  const refusal = refusalOf(refusals, refusedBy)
  const fields = [
    'retry-after',
    retryAfterHeader(states),
    'cache-control',
    'no-store',
    ...limitHeaders(states),
  ]
  if (!refusal) return sendError(request, response, errors.tooManyRequests, fields)
  const { html, headers } = refusal
  if (html) fields.push('vary', 'Accept')
  fields.push(...headers)
  const isHtml = html && prefersHtml(request.headers.accept, refusal.contentType)
  const reply = isHtml ? { status: refusal.status, contentType: htmlType, body: html } : refusal
  sendError(request, response, reply, fields)
}

const htmlType = 'text/html; charset=utf-8'

/** Answers a request whose rules could not be asked and are not to be passed over (`onStoreError: closed`). */
export function refuseUndecided(request: ClientRequest, response: ClientResponse): void {
  sendError(request, response, errors.limiterUnavailable, ['retry-after', '1', 'cache-control', 'no-store'])
}
