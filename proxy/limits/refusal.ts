import { errors } from '../../shared/error-replies.ts'
import { prefersHtml } from '../http/fields/accept.ts'
import { isGrpcCall } from '../http/fields/grpc.ts'
import { sendError } from '../http/fields/reply.ts'
import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import type { Policy } from '../policy.ts'
import type { AppliedBan } from './clients/client-entries.ts'
import { retryAfterHeader, type LimitHeaders } from './headers.ts'
import type { Decision } from './limiter.ts'

/** What a refused request is answered in place of the default. */
export type Refusal = {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
  /** For clients that prefer HTML. */
  readonly html: Buffer | undefined
  /** Name, value, name, value… to add. */
  readonly headers: readonly string[]
}

export type Refusals = {
  /** Of rules without one of their own. */
  readonly everyRule: Refusal | undefined
  /** By the name of the rule. */
  readonly ofRules: ReadonlyMap<string, Refusal>
}

/** @returns undefined for the default */
export function refusalOf({ everyRule, ofRules }: Refusals, policy: Policy | undefined): Refusal | undefined {
  return (policy && ofRules.get(policy.name)) ?? everyRule
}

/** The names of the headers that refusals add, each once. */
export function addedNames({ everyRule, ofRules }: Refusals): string[] {
  const refusals = [...(everyRule ? [everyRule] : []), ...ofRules.values()]
  return [...new Set(refusals.flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 0)))]
}

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
  const fields = ['retry-after', retryAfterHeader(states), ...noStore, ...limitHeaders(states)]
  sendRefusal(request, response, refusalOf(refusals, refusedBy), fields)
}

/** Answers a request of a banned client: 429, with `Retry-After` until the ban ends. */
export function refuseBanned(
  request: ClientRequest,
  response: ClientResponse,
  { policy, leftMs }: AppliedBan,
  { limitHeaders, refusals }: RefusalOptions,
): void {
  const states = policy ? [{ policy, exceeded: true, remaining: 0, resetMs: leftMs }] : []
  const fields = ['retry-after', String(Math.ceil(leftMs / 1000)), ...noStore, ...limitHeaders(states)]
  sendRefusal(request, response, refusalOf(refusals, policy), fields)
}

const noStore = ['cache-control', 'no-store']

function sendRefusal(
  request: ClientRequest,
  response: ClientResponse,
  refusal: Refusal | undefined,
  fields: string[],
): void {
  // Calls of gRPC have one way to say it.
  if (!refusal || isGrpcCall(request)) return sendError(request, response, errors.tooManyRequests, fields)
  const { html, headers } = refusal
  if (html) fields.push('vary', 'Accept')
  fields.push(...headers)
  const isHtml = html && prefersHtml(request.headers.accept, refusal.contentType)
  const reply = isHtml ? { status: refusal.status, contentType: htmlType, body: html } : refusal
  sendError(request, response, reply, fields)
}

const htmlType = 'text/html; charset=utf-8'

/** Answers a request that cannot be decided because the store is unavailable (`onStoreError: closed`). */
export function refuseUndecided(request: ClientRequest, response: ClientResponse): void {
  sendError(request, response, errors.limiterUnavailable, ['retry-after', '1', 'cache-control', 'no-store'])
}
