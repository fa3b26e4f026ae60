import type { Socket } from 'node:net'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ForwardProgress } from '../http/connection/client-progress.ts'
import { declaredLength, expectsContinue } from '../http/fields/framing.ts'
import { forward } from '../http/forward/forward.ts'
import { HeldBody, type HeldBodyOptions, type ReadBody } from '../http/forward/body/held-body.ts'
import { bodyWaitOf } from '../http/forward/body/request-buffering.ts'
import { upstreamHeaders } from '../http/forward/upstream-headers.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import type { ResponseHead } from '../http/upstream/response/response-head.ts'
import {
  MAX_BODY_BYTES,
  readsUnits,
  whyUnread,
  withRequestedUnits,
} from '../limits/costs/requested-charges.ts'
import { Settlement } from '../limits/costs/settlement.ts'
import type { RequestedCharges } from '../limits/verdict.ts'
import type { SentBody } from '../limits/keys/body/body-values.ts'
import type { Charge, PolicyState } from '../limits/limiter.ts'
import { hiddenHeaders, type Policy } from '../policy.ts'
import type { ClientAddress, Peer } from '../request/addresses/client-address.ts'
import { remainingForwards } from '../request/local-replies.ts'
import type { RequestHead } from '../request/request-head.ts'
import type { Rejection, UnreadCost, UnreadReserve } from '../telemetry/telemetry.ts'
import type { ExchangeReport } from './exchange-report.ts'
import type { HandlerOptions, OnUpgrade } from './handler-options.ts'
import { publicHead } from './public-names.ts'
import { findUpstream, rewriteFor, type RewrittenRequest, type RoutedUpstream } from './routing.ts'

const bodyOverLimit = 'the body is too large (MAX_BODY_SIZE)'

function bodyOrReason(sent: SentBody | 'gone'): Buffer | UnreadReserve | 'gone' {
  if (sent === 'gone') return sent
  if ('unread' in sent) return sent.unread
  return sent.isWhole ? sent.bytes : 'size'
}

/** The methods for which `Range` is defined. The answer to HEAD has the status of that to GET. */
const readMethods = new Set(['GET', 'HEAD'])

const noBytes: Buffer = Buffer.alloc(0)

/** The current owner of the request's body: `HeldBody` before it is forwarded, `Forwarding` afterwards. */
type Delivery = ForwardProgress & {
  readonly sentBytes: number
  /** Gives the request up: its client has disconnected, or it is answered without the backend. */
  abandon(): void
}

/** The exchange that the request belongs to. */
type ForwardedExchange = {
  readonly options: HandlerOptions
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly peer: Peer
  readonly clientAddress: ClientAddress
  readonly report: ExchangeReport
  /** The charges that the limiter has decided. */
  readonly charges: readonly Charge[]
  readonly onUpgrade: OnUpgrade | undefined
  /** The limit headers of the response: name, value, name, value… */
  readonly limitHeaders: readonly string[]
  /** Whether the client disconnected meanwhile, or sent an invalid body and was answered. */
  readonly isAnswered: boolean
  guard(step: () => void): void
  reject(rejection: Rejection, reply: ErrorReply, reason: string): void
  finish(status: number): void
}

/** A request on its way to the backend, with its body and its reservations. */
export class ForwardedRequest {
  readonly #exchange: ForwardedExchange
  /** The reservations of the request. */
  #settlement: Settlement | undefined
  /** Set if the body is read before the request is sent to the backend. */
  #held: HeldBody | undefined
  delivery: Delivery | undefined
  #read: ReturnType<ForwardedRequest['readBody']> | undefined

  constructor(exchange: ForwardedExchange) {
    this.#exchange = exchange
  }

  /** Returns the part of the body that rules read, once it has arrived. It is read once for all callers. */
  readBody(): SentBody | 'gone' | Promise<SentBody | 'gone'> {
    return (this.#read ??= this.#readBody())
  }

  #readBody(): SentBody | Promise<SentBody | 'gone'> {
    if (!this.#exchange.request.hasContent) return { unread: 'missing' }
    const read = new Promise<ReadBody>((resolve) => {
      this.#hold({ maxBytes: MAX_BODY_BYTES, onlyThisTurn: false }, resolve)
    })
    return read.then((body) => {
      this.delivery = undefined
      if (this.#exchange.isAnswered) {
        this.dropBody()
        return 'gone'
      }
      if (body === 'memory') return { unread: body }
      if (typeof body !== 'string') return { bytes: body, isWhole: true }
      return { bytes: this.#held?.received.subarray(0, MAX_BODY_BYTES) ?? noBytes, isWhole: false }
    })
  }

  /** Returns the charges with the units that the request's body states, once it has been read or cannot be read. */
  readUnits(charges: readonly Charge[]): RequestedCharges | Promise<RequestedCharges> {
    const unread = whyUnread(this.#exchange.request)
    if (unread) return this.#unitsOf(charges, unread)
    const sent = this.readBody()
    if (sent instanceof Promise) return sent.then((later) => this.#unitsOf(charges, bodyOrReason(later)))
    return this.#unitsOf(charges, bodyOrReason(sent))
  }

  #unitsOf(charges: readonly Charge[], body: Buffer | UnreadReserve | 'gone'): RequestedCharges {
    if (this.#exchange.isAnswered || body === 'gone') {
      this.dropBody()
      return 'gone'
    }
    const read = withRequestedUnits(charges, body, this.#exchange.options.telemetry)
    if (body !== 'memory') return read
    return read.some((charge) => charge.policy.mode === 'enforce' && readsUnits(charge)) ? 'busy' : read
  }

  /** Buffers the body before the request is decided about, or before it is sent to the backend. */
  #hold(limits: Pick<HeldBodyOptions, 'maxBytes' | 'onlyThisTurn'>, onRead: (read: ReadBody) => void): void {
    const { request, response, options, clientAddress } = this.#exchange
    if (expectsContinue(request)) response.writeContinue()
    const guard = (step: () => void): void => this.#exchange.guard(step)
    const held = { ...limits, memory: options.heldBodies, client: clientAddress.prefix, guard }
    this.#held = new HeldBody(request, held, onRead)
    this.delivery = this.#held
  }

  /**
   * Settles the reservations of an allowed request as its response arrives, and hides the headers that policies take the cost from.
   *
   * @param states of the decision; called only if one has a reservation, or a policy hides a header
   */
  settleAfterwards(states: readonly PolicyState[]): void {
    const { options, report, charges, request } = this.#exchange
    const { limiter, limitHeaders, telemetry, onCostUnread } = options
    const settling = {
      limiter,
      limitHeaders,
      hidden: charges.flatMap(({ policy }) => hiddenHeaders(policy)),
      requestBytes: () => this.delivery?.sentBytes ?? 0,
      request,
      onUnread: (policy: Policy, reason: UnreadCost) => {
        telemetry.costUnread(policy, reason)
        onCostUnread(policy, reason, report.requestId)
      },
    }
    this.#settlement = new Settlement(settling, states)
  }

  /** @param states after the request has waited for its turn */
  waited(states: readonly PolicyState[]): void {
    this.#settlement?.waited(states)
  }

  /** The remaining quota after the refunds so far; undefined without reservations. */
  get limitHeaders(): readonly string[] | undefined {
    return this.#settlement?.responseHeaders
  }

  /** Sends an allowed request to its backend, or rejects it if no route matches it. */
  forward(head: RequestHead): void {
    const { options, request, report } = this.#exchange
    const { requestBuffering } = options
    const upstream = findUpstream(options, head, report.routedBy)
    if (!upstream) return this.#reject('route', errors.notFound, 'no route matches the request')
    report.route = upstream.name
    const rewritten = rewriteFor(upstream, request, head)
    if (typeof rewritten === 'string') return this.#reject('target', errors.badRequest, rewritten)
    const { maxBodyBytes } = upstream.forwarder
    if (maxBodyBytes > 0 && (declaredLength(request) ?? 0) > maxBodyBytes)
      return this.#reject('body-too-large', errors.bodyTooLarge, bodyOverLimit)
    const wait = this.#held ? undefined : bodyWaitOf(request, requestBuffering)
    if (wait === undefined) return this.#send(head, upstream, rewritten)
    this.#hold({ maxBytes: requestBuffering, onlyThisTurn: wait === 'turn' }, () => {
      this.delivery = undefined
      if (this.#exchange.isAnswered) this.cancel()
      else this.#send(head, upstream, rewritten)
    })
  }

  /** Sends the request to the backend, with the part of its body that has arrived. */
  #send(
    { host }: RequestHead,
    { name: route, forwarder, upstreamHost, setHeaders, isUncached }: RoutedUpstream,
    { target, strippedPrefix, references }: RewrittenRequest,
  ): void {
    const { options, request, response, peer, clientAddress, report, onUpgrade, limitHeaders } =
      this.#exchange
    if (!this.#held && expectsContinue(request)) response.writeContinue()
    const { scheme, classifyField } = options
    const trace = report.trace?.forwarded(route)
    this.delivery = forward(forwarder, {
      request,
      response,
      held: this.#held,
      client: clientAddress.prefix,
      target,
      upstreamHeaders: upstreamHeaders(classifyField, request.rawHeaders, {
        peerAddress: peer.address,
        peerTrusted: peer.trusted,
        clientAddress: clientAddress.address,
        clientNamed: clientAddress !== peer.client,
        scheme,
        requestId: report.requestId,
        host,
        upstreamHost,
        setHeaders,
        withoutVia: !options.addsVia,
        strippedPrefix,
        references,
        protocolVersion: request.httpVersion,
        maxForwards: remainingForwards(request),
        bodyIsRead: this.#settlement?.readsBody ?? false,
        withoutByteRange: (this.#settlement?.countsOk ?? false) && !readMethods.has(request.method),
        traceHeaders: trace?.headers,
        withoutCookies: options.hiddenCookies?.withoutCookies,
      }),
      responseHeaders: limitHeaders,
      settlement: this.#settlement,
      publicHead: publicHead(this.#exchange, { host, sentHost: upstreamHost, strippedPrefix }, isUncached),
      trace,
      requestId: report.requestId,
      onBodyOverLimit: () => report.rejected('body-too-large', errors.bodyTooLarge, bodyOverLimit),
      onUpgrade: onUpgrade && ((head, upstream, rest) => this.#upgrade(head, upstream, rest)),
    })
  }

  #reject(rejection: Rejection, reply: ErrorReply, reason: string): void {
    this.#settlement?.cancel()
    this.#exchange.reject(rejection, reply, reason)
  }

  /** Drops the body and refunds the reservations of a request that is not forwarded. */
  cancel(): void {
    this.dropBody()
    this.#settlement?.cancel()
  }

  /** Drops the held part of the body and the part still to come, if the client disconnected or the request was answered. */
  dropBody(): void {
    this.#held?.drop()
  }

  /** Ends the exchange when its tunnel opens. The 101 is written to the socket, so `response` never closes. */
  #upgrade(head: ResponseHead, upstream: Socket, rest: Buffer): void {
    const { onUpgrade, request } = this.#exchange
    onUpgrade?.(head, upstream, rest)
    const settlement = this.#settlement
    if (settlement?.lasts) {
      this.#settlement = undefined
      const { socket } = request
      if (socket.destroyed) settlement.finish()
      else socket.once('close', () => settlement.finish())
    }
    this.#exchange.guard(() => this.#exchange.finish(101))
  }

  /** Called when the request has been answered, or its client has disconnected. */
  finish(): void {
    const isUnsent = this.#held !== undefined && this.delivery === this.#held
    this.delivery?.abandon()
    this.#held?.drop()
    if (isUnsent) this.#settlement?.cancel()
    else this.#settlement?.finish()
  }

  /** Called when a step of the request has thrown an exception. */
  fail(): void {
    this.delivery?.abandon()
    this.#held?.drop()
  }

  /** Stops forwarding the request, which is answered without the backend. */
  abandon(): void {
    this.delivery?.abandon()
  }
}
