import { calendarWindows, type CalendarWindows } from './algorithms/calendar/calendar-windows.ts'
import { countsInFlight } from './algorithms/registry.ts'
import { errors } from '../../shared/error-replies.ts'
import { prefersHtml } from '../http/fields/accept.ts'
import { isGrpcCall, sendError } from '../http/fields/reply.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import { refusesOver, type Policy } from '../policy.ts'
import { hasBodyKey } from '../policy/partition.ts'
import type { AppliedBan } from './clients/client-entries.ts'
import type { Decision, PolicyState } from './limiter.ts'

// Limits in responses to clients: the headers of each response on a limited endpoint, and the reply to a refused request.

/** The response to a refused request in place of the default. */
export type Refusal = {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
  /** The page for clients that prefer HTML. */
  readonly html: Buffer | undefined
  /** Headers to add: name, value, name, value… */
  readonly headers: readonly string[]
}

export type Refusals = {
  /** The refusal for rules that do not configure their own. */
  readonly everyRule: Refusal | undefined
  /** By rule name. */
  readonly ofRules: ReadonlyMap<string, Refusal>
}

/** @returns undefined for the default response */
export function refusalOf({ everyRule, ofRules }: Refusals, policy: Policy | undefined): Refusal | undefined {
  return (policy && ofRules.get(policy.name)) ?? everyRule
}

/** The names of the headers that refusals add, without duplicates. */
export function addedNames({ everyRule, ofRules }: Refusals): string[] {
  const refusals = [...(everyRule ? [everyRule] : []), ...ofRules.values()]
  return [...new Set(refusals.flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 0)))]
}

type Refused = Extract<Decision, { readonly outcome: 'refused' }>

/** Options for responses to refused requests. */
export type RefusalOptions = {
  readonly limitHeaders: LimitHeaders
  readonly refusals: Refusals
}

/** Answers a request over a limit: 429 or the configured response, with `Retry-After` and the limit headers. */
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
  // A gRPC call can only be refused with a gRPC status.
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

/** A format of the headers that report limits to clients. */
type LimitHeaderFormat = 'ietf' | 'x-ratelimit'

/** Makes the headers with the remaining quota, for a response on a limited endpoint, allowed or refused: name, value, name, value… */
export type LimitHeaders = (states: readonly PolicyState[]) => string[]

/**
 * Makes the headers in the given formats; no headers without a format.
 *
 * @param hasBodyRules some policies may count by a value in the body. Their limits are not reported: the numbers would show a stranger how
 *   many others try an account
 * @param wallNow the time of day, in milliseconds since 1970
 */
export function createLimitHeaders(
  formats: readonly LimitHeaderFormat[],
  hasBodyRules = false,
  wallNow: () => number = Date.now,
): LimitHeaders {
  const make = createAllHeaders(formats, wallNow)
  return hasBodyRules ? (states) => make(states.filter(({ policy }) => !hasBodyKey(policy))) : make
}

function createAllHeaders(formats: readonly LimitHeaderFormat[], wallNow: () => number): LimitHeaders {
  const ietf: LimitHeaders = (states) => ietfHeaders(states, wallNow)
  const [first, second] = new Set(formats)
  if (first === undefined) return () => []
  if (second === undefined) return first === 'ietf' ? ietf : xRateLimitHeaders
  return (states) => [...ietf(states), ...xRateLimitHeaders(states)]
}

/** The names of these headers, in their usual spelling. */
export function limitHeaderNames(formats: readonly LimitHeaderFormat[]): string[] {
  return formats.flatMap((format) => names[format])
}

const names: Readonly<Record<LimitHeaderFormat, readonly string[]>> = {
  ietf: ['RateLimit-Policy', 'RateLimit'],
  'x-ratelimit': ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
}

/**
 * The response fields of draft-ietf-httpapi-ratelimit-headers-11: structured-field Lists of String items. Only this function writes them,
 * because the draft may still change the String to a Token.
 *
 * Shadow policies are left out: a client that heeds the fields would slow down for a limit that is not enforced.
 */
function ietfHeaders(states: readonly PolicyState[], wallNow: () => number): string[] {
  const shown = oneStateEach(states)
  const policies = rateLimitPolicyHeader(shown, wallNow)
  const limits = rateLimitHeader(shown)
  return policies === undefined || limits === undefined
    ? []
    : ['ratelimit-policy', policies, 'ratelimit', limits]
}

/**
 * `RateLimit-Policy`: quota and window (whole seconds) of each policy; undefined if no policy is enforced. For calendar windows, the length
 * of the current one.
 */
function rateLimitPolicyHeader(states: readonly PolicyState[], wallNow: () => number): string | undefined {
  let list: string | undefined
  for (const { policy } of states) {
    if (policy.mode === 'shadow') continue
    const { item: constant, calendar } = constantsOf(policy)
    const item = calendar ? itemOf(policy, calendar.lengthMs(wallNow())) : constant
    list = list === undefined ? item : `${list}, ${item}`
  }
  return list
}

/**
 * `RateLimit`: the remaining quota under each policy, and the seconds until quota is freed, rounded up. This is the effective window of
 * section 4.1.2, within which the client can use no more than the remaining quota.
 */
function rateLimitHeader(states: readonly PolicyState[]): string | undefined {
  let list: string | undefined
  for (const { policy, remaining, resetMs } of states) {
    if (policy.mode === 'shadow') continue
    // It is unknown when a request in flight ends.
    const reset = constantsOf(policy).isInFlight ? '' : `;t=${wholeSeconds(resetMs)}`
    const item = `"${policy.name}";r=${remaining}${reset}`
    list = list === undefined ? item : `${list}, ${item}`
  }
  return list
}

/** `Retry-After` in whole seconds, rounded up: the time until every exhausted policy lets the client through again. */
function retryAfterHeader(states: readonly PolicyState[]): string {
  let maxMs = 0
  for (const state of states) if (isRefusing(state)) maxMs = Math.max(maxMs, state.resetMs)
  return wholeSeconds(maxMs)
}

/** Whether the policy refuses the request, rather than only report it or send it to another route. */
function isRefusing({ policy, exceeded }: PolicyState): boolean {
  return exceeded && constantsOf(policy).refuses
}

/** The constant headers of a policy. */
type Constants = {
  /** The policy's item of `RateLimit-Policy`, unless its windows differ in length. */
  readonly item: string
  readonly calendar: CalendarWindows | undefined
  readonly isInFlight: boolean
  /** The result of `refusesOver`. */
  readonly refuses: boolean
}

const constants = new WeakMap<Policy, Constants>()

/** Made once for each policy, which never changes. Names need no escaping: the settings allow only `[A-Za-z0-9._-]`. */
function constantsOf(policy: Policy): Constants {
  const known = constants.get(policy)
  if (known) return known
  const isInFlight = countsInFlight(policy)
  const made = {
    item: itemOf(policy, isInFlight ? undefined : policy.windowMs),
    calendar: policy.calendar && calendarWindows(policy.calendar),
    isInFlight,
    refuses: refusesOver(policy),
  }
  constants.set(policy, made)
  return made
}

function itemOf({ name, quota }: Policy, windowMs: number | undefined): string {
  return `"${name}";q=${quota}${windowMs === undefined ? '' : `;w=${wholeSeconds(windowMs)}`}`
}

/**
 * `X-RateLimit-Limit`, `-Remaining` and `-Reset`, for clients that do not read the draft's fields: name, value, name, value… They describe
 * one policy: the one with the least quota left, among the policies that refuse the request, or among all if none does. `-Reset` is
 * in seconds from now, and left out for a policy that limits requests in flight.
 *
 * Shadow policies are left out, as in the headers of the draft.
 */
function xRateLimitHeaders(states: readonly PolicyState[]): string[] {
  let tightest: PolicyState | undefined
  for (const state of states) {
    if (state.policy.mode === 'shadow') continue
    if (tightest === undefined || isTighter(state, tightest)) tightest = state
  }
  if (tightest === undefined) return []
  const { policy, remaining, resetMs } = tightest
  const headers = ['x-ratelimit-limit', String(policy.quota), 'x-ratelimit-remaining', String(remaining)]
  if (!constantsOf(policy).isInFlight) headers.push('x-ratelimit-reset', wholeSeconds(resetMs))
  return headers
}

/** Returns the states as of `durationMs` later, for a response that is sent only then. */
export function statesAfter(states: readonly PolicyState[], durationMs: number): readonly PolicyState[] {
  return states.map((state) => ({ ...state, resetMs: Math.max(0, state.resetMs - durationMs) }))
}

/**
 * Reduces states to one for each policy. If a request counted for several clients under a policy, keeps the state of the client with the
 * least quota left, which the policy refuses first. Policies are compared by name, because clients may have different quotas under the same
 * policy.
 *
 * @param states in the order of the charges: the states of a policy are side by side
 */
export function oneStateEach(states: readonly PolicyState[]): readonly PolicyState[] {
  if (!states.some(({ policy }, i) => policy.name === states[i - 1]?.policy.name)) return states
  const kept: PolicyState[] = []
  for (const state of states) {
    const last = kept.at(-1)
    if (last?.policy.name !== state.policy.name) kept.push(state)
    else if (isTighter(state, last)) kept[kept.length - 1] = state
  }
  return kept
}

/** Whether `state` is tighter: it refuses the request and the other does not; otherwise it has less left; otherwise it resets later. */
function isTighter(state: PolicyState, than: PolicyState): boolean {
  if (isRefusing(state) !== isRefusing(than)) return isRefusing(state)
  return state.remaining === than.remaining ? state.resetMs > than.resetMs : state.remaining < than.remaining
}

/** A duration in seconds for response headers, at least 1, because a client told to wait 0 seconds retries at once. */
function wholeSeconds(durationMs: number): string {
  return String(Math.max(1, Math.ceil(durationMs / 1000)))
}
