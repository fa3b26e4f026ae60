import type { Socket } from 'node:net'
import type { SlowClients } from '../http/connection/slow-clients.ts'
import type { Banning } from '../limits/clients/banning.ts'
import type { ThrottledClients } from '../limits/clients/throttled-clients.ts'
import type { RefusalOptions } from '../limits/replies.ts'
import type { BodyMemory } from '../http/forward/body/body-memory.ts'
import type { CorsHeaders } from '../http/fields/cors.ts'
import type { RequestFieldClassifier } from '../http/fields/header-roles.ts'
import type { CompiledLimits, DecideOptions } from '../limits/verdict.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import type { PeerOptions } from '../request/addresses/client-address.ts'
import type { HeadOptions } from '../request/request-head.ts'
import type { HiddenCookies } from '../request/values/hidden-cookies.ts'
import type { Access } from '../telemetry/access-log.ts'
import type { RefusedRequest } from '../telemetry/refusal-log.ts'
import type { Telemetry, UnreadCost, UnreadKey } from '../telemetry/telemetry.ts'
import type { Tracing } from '../telemetry/tracing/tracing.ts'
import type { ResponseHead } from '../http/upstream/response/response-head.ts'
import type { OnException } from './error-boundary.ts'
import type { RoutingOptions } from './routing.ts'

/** The options of a request: what the table and its routes say, which a reload replaces, and what stays the same. */
export type HandlerOptions = TableOptions & RoutingOptions & FixedOptions

/** What the current table of limits says about requests. */
export type TableOptions = CompiledLimits &
  RefusalOptions & {
    readonly limiter: Limiter
    readonly tokens: DecideOptions['tokens']
    readonly readsBodies: DecideOptions['readsBodies']
    readonly classifyField: RequestFieldClassifier
    /** The CORS headers; undefined if scripts of other origins must not read local replies. */
    readonly corsHeaders: CorsHeaders | undefined
    /** Cookies that the backend neither gets nor sets; undefined if there are none. */
    readonly hiddenCookies: HiddenCookies | undefined
  }

/** What stays the same while the gateway runs. */
export type FixedOptions = HeadOptions &
  RequestLog & {
    readonly connections: PeerOptions['connections']
    readonly entries: DecideOptions['entries']
    /** Bans clients that are refused too often. */
    readonly banning: Pick<Banning, 'refused'>
    readonly throttledClients: Pick<ThrottledClients, 'record'>
    readonly slowClients: Pick<SlowClients, 'add' | 'finish'>
    readonly heldBodies: BodyMemory
    /** Maximum bytes of a body to buffer before the request is sent to the backend; 0 disables buffering. */
    readonly requestBuffering: number
    /** Whether `Via` is added to requests; otherwise it is removed from them. */
    readonly addsVia: boolean
    readonly scheme: 'http' | 'https'
    readonly telemetry: Telemetry
    /** Undefined without tracing. */
    readonly tracing: Tracing | undefined
    /** Called with an exception that a step of the request threw. */
    readonly onException: OnException
    readonly makeRequestId: () => string
    readonly now: () => number
    /** True once the gateway is shutting down. */
    readonly isStopping: () => boolean
  }

/** Called for the log. */
export type RequestLog = {
  /** Called with the peer's address for each request whose named client is ignored, because the peer is not trusted. */
  readonly onUntrustedProxy: (peerAddress: string) => void
  /** Called for each malformed or oversized request, which is rejected before any rule applies. */
  readonly onRejected: (requestId: string, status: number, reason: string) => void
  /** Called for each auth request that cannot be decided about because of a mistake in the sending proxy's configuration. */
  readonly onUnusableAuthRequest: (peerAddress: string, reason: string) => void
  /** Called for each response that does not state the cost of its request. */
  readonly onCostUnread: (policy: Policy, reason: UnreadCost, requestId: string) => void
  /** Called for each request that counts by address under a policy, because its body does not identify the client with certainty. */
  readonly onKeyUnread: (policy: Policy, reason: UnreadKey, requestId: string) => void
  /** Called for each request that a rule has refused; undefined if refusals are not logged. */
  readonly onRefused: ((refused: RefusedRequest) => void) | undefined
  /** Called once for each finished request; undefined without an access log. */
  readonly onFinished: ((access: Access) => void) | undefined
}

/** Called when the backend accepts an upgrade: the tunnel takes the place of the response. @param rest bytes read after the 101 */
export type OnUpgrade = (head: ResponseHead, upstream: Socket, rest: Buffer) => void

/** The current options, which a reload replaces. A request keeps the options that it began with. */
export type LiveOptions = { readonly options: HandlerOptions }

export type Handler = (request: ClientRequest, response: ClientResponse, onUpgrade?: OnUpgrade) => void
