import { errors } from '../../shared/error-replies.ts'
import type { ForwardProgress } from '../http/connection/client-progress.ts'
import {
  areRequested,
  LONGEST_BODY,
  whyUnread,
  withRequestedUnits,
} from '../limits/costs/requested-charges.ts'
import { Settlement } from '../limits/costs/settlement.ts'
import { forward, type ForwarderOptions } from '../http/forward/forward.ts'
import { HeldBody, type HeldBodyOptions } from '../http/forward/held-body.ts'
import type { PublicNames } from '../http/forward/public-fields.ts'
import { MAX_TAGS, privateReference, type ReferenceNames } from '../http/forward/private-references.ts'
import { bodyWaitOf } from '../http/forward/request-buffering.ts'
import { upstreamHeaders } from '../http/forward/upstream-headers.ts'
import { declaredLength, expectsContinue } from '../http/fields/framing.ts'
import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import { sendError } from '../http/fields/reply.ts'
import type { Charge, Decision } from '../limits/limiter.ts'
import { requestedUnits, type Policy } from '../policy.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import { answerOptions, remainingForwards } from '../request/local-replies.ts'
import { readTarget } from '../request/target/target.ts'
import { readRequestHead, type RejectedHead, type RequestHead } from '../request/request-head.ts'
import type { UnreadCost, UnreadReserve } from '../telemetry/telemetry.ts'
import type { HandlerOptions, OnUpgrade, RoutedUpstream } from './handler-options.ts'
import { RequestSteps } from './request-steps.ts'

const bodyOverLimit = 'the body is too large (MAX_BODY_SIZE)'

const unnamed = 'Destination is not below the prefix of the route'
const unstripped = 'the path spells the prefix of the route differently, or no path follows the prefix'

/** Undefined where the backend knows host and path as its client does. */
function publicNamesOf(
  sentHost: string | undefined,
  publicHost: string,
  prefix = '',
): PublicNames | undefined {
  if (sentHost === undefined && prefix === '') return undefined
  return { publicHost, sentHost: sentHost ?? publicHost, prefix }
}

function isEnforced({ policy }: Charge): boolean {
  return policy.mode === 'enforce' && requestedUnits(policy) !== undefined
}

/** Where a request is sent to, and as what. */
type Sending = Pick<RequestHead, 'target' | 'host'> & {
  readonly route: RoutedUpstream | undefined
  readonly prefix: string
  readonly sentHost: string | undefined
  readonly stripped: ReturnType<NonNullable<RoutedUpstream['stripPrefix']>>
  readonly references: ReferenceNames | undefined
  readonly forwarder: ForwarderOptions
}

/** Takes the body of the request, and on the way to the backend brings the response. */
type Delivery = ForwardProgress & {
  readonly sentBytes: number
  clientGone(): void
  abandon(reason: string): void
}

/** The way of a request that is forwarded when it is allowed. */
export class Exchange extends RequestSteps {
  readonly #onUpgrade: OnUpgrade | undefined
  /** What was reserved for the request. */
  #settlement: Settlement | undefined
  /** Set where the body had to be read before the decision. */
  #held: HeldBody | undefined
  forwarding: Delivery | undefined

  constructor(
    options: HandlerOptions,
    peer: Peer,
    request: ClientRequest,
    response: ClientResponse,
    onUpgrade: OnUpgrade | undefined,
  ) {
    super(options, peer, request, response)
    this.#onUpgrade = onUpgrade
  }

  protected override readHead(): RequestHead | RejectedHead {
    const head = readRequestHead(this.request, this.options, this.#onUpgrade !== undefined)
    const { addresses, onUntrustedProxy } = this.options
    if (!this.peer.trusted && !('reason' in head) && this.request.headers[addresses.header] !== undefined)
      onUntrustedProxy(this.peer.address)
    return head
  }

  protected override answerOptions(): void {
    // The health check of a load balancer that cannot reach the admin listener.
    if (this.report.path === '*' && this.options.isStopping())
      return sendError(this.request, this.response, errors.stopping)
    answerOptions(this.response)
  }

  protected override charge(charges: readonly Charge[], head: RequestHead): void {
    if (this.options.readsBodies && areRequested(charges)) this.#readBody(charges, head)
    else super.charge(charges, head)
  }

  /** Decides once the body of the request says what to reserve, or cannot. */
  #readBody(charges: readonly Charge[], head: RequestHead): void {
    const { telemetry } = this.options
    const decide = (body: Buffer | UnreadReserve): void => {
      this.forwarding = undefined
      if (this.isOver || this.response.headersSent) return this.#held?.drop()
      const read = withRequestedUnits(charges, body, telemetry)
      if (body === 'memory' && read.some(isEnforced)) this.#answerBusy()
      else super.charge(read, head)
    }
    const unread = whyUnread(this.request)
    if (unread) return decide(unread)
    this.#hold({ maxBytes: LONGEST_BODY, onlyThisTurn: false }, (body) =>
      decide(body === 'turn' ? 'size' : body),
    )
  }

  /** Receives the body before it is known what becomes of the request, or before it is sent to the backend. */
  #hold(
    limits: Pick<HeldBodyOptions, 'maxBytes' | 'onlyThisTurn'>,
    onRead: ConstructorParameters<typeof HeldBody>[2],
  ): void {
    if (expectsContinue(this.request)) this.response.writeContinue()
    const guard = (step: () => void): void => this.guard(step)
    const client = this.report.client.prefix
    const options = { ...limits, memory: this.options.heldBodies, client, guard }
    this.#held = new HeldBody(this.request, options, onRead)
    this.forwarding = this.#held
  }

  /** No memory is the gateway's lack: the client is not refused for it, and not banned. */
  #answerBusy(): void {
    sendError(this.request, this.response, errors.gatewayBusy, [
      'retry-after',
      '1',
      'cache-control',
      'no-store',
    ])
    this.#held?.drop()
  }

  protected override keepReservations(decision: Decision): void {
    if (decision.outcome !== 'allowed' || !decision.states.some(({ reservation }) => reservation)) return
    const { limiter, limitHeaders, telemetry, onCostUnread } = this.options
    const settling = {
      limiter,
      limitHeaders,
      requestBytes: () => this.#sentBytes,
      onUnread: (policy: Policy, reason: UnreadCost) => {
        telemetry.costUnreadable(policy, reason)
        onCostUnread(policy, reason, this.report.requestId)
      },
    }
    this.#settlement = new Settlement(settling, decision.states)
  }

  /** Bytes of the body that were sent to the backend. */
  get #sentBytes(): number {
    return this.forwarding?.sentBytes ?? 0
  }

  protected override giveBack(): void {
    super.giveBack()
    this.#settlement?.cancel()
  }

  /** Over HTTP/2 a request is not over before its body has been read. */
  protected override dropBody(): void {
    this.#held?.drop()
  }

  protected override get saidLimits(): readonly string[] {
    return this.#settlement ? this.#settlement.responseHeaders : this.limitHeaders
  }

  protected override pass({ target, host }: RequestHead): void {
    const { routes } = this.options
    const route = routes?.table.find(target, host)
    if (route) this.report.route = route.name
    else if (routes && !routes.hasFallback) {
      this.#settlement?.cancel()
      return this.reject('route', errors.notFound, 'no route matches the request')
    }
    const forwarder = route ? route.forwarder : this.options.forwarder
    const prefix = route ? route.prefix : this.options.upstreamPrefix
    const sentHost = route ? route.upstreamHost : this.options.sentHost
    const stripped = route?.stripPrefix?.(target)
    if (route?.stripPrefix && !stripped) {
      this.#settlement?.cancel()
      return this.reject('target', errors.badRequest, unstripped)
    }
    const references = this.#referencesOf(host, prefix, sentHost, route)
    const { destination } = this.request.headers
    if (
      references &&
      typeof destination === 'string' &&
      !privateReference('destination', destination, references)
    ) {
      this.#settlement?.cancel()
      return this.reject('target', errors.badRequest, unnamed)
    }
    const { maxBodyBytes } = forwarder
    if (maxBodyBytes > 0 && (declaredLength(this.request) ?? 0) > maxBodyBytes) {
      this.#settlement?.cancel()
      return this.reject('body-too-large', errors.bodyTooLarge, bodyOverLimit)
    }
    const sending = { target, host, route, prefix, sentHost, stripped, references, forwarder }
    const { requestBuffering } = this.options
    const wait = this.#held || this.#onUpgrade ? undefined : bodyWaitOf(this.request, requestBuffering)
    if (wait === undefined) return this.#send(sending)
    this.#hold({ maxBytes: requestBuffering, onlyThisTurn: wait === 'turn' }, () => {
      this.forwarding = undefined
      if (this.isOver || this.response.headersSent) this.giveBack()
      else this.#send(sending)
    })
  }

  /** Sends the request to the backend, with its body as far as that has come. */
  #send(sending: Sending): void {
    const { target, host, route, prefix, sentHost, stripped, references, forwarder } = sending
    if (!this.#held && expectsContinue(this.request)) this.response.writeContinue()
    const { scheme, classifyField } = this.options
    const trace = this.report.trace?.forwarded(route?.name)
    this.forwarding = forward(forwarder, {
      request: this.request,
      response: this.response,
      held: this.#held,
      client: this.report.client.prefix,
      target: prefix + (stripped?.target ?? target.forwardTarget),
      upstreamHeaders: upstreamHeaders(classifyField, this.request.rawHeaders, {
        peerAddress: this.peer.address,
        peerTrusted: this.peer.trusted,
        clientAddress: this.report.client.address,
        clientNamed: this.report.client !== this.peer.client,
        scheme,
        requestId: this.report.requestId,
        host,
        upstreamHost: sentHost,
        headerLines: route ? route.headerLines : this.options.headerLines,
        withoutVia: !this.options.addsVia,
        strippedPrefix: stripped?.prefix,
        references,
        protocolVersion: this.request.httpVersion,
        maxForwards: remainingForwards(this.request),
        bodyIsRead: this.#settlement?.readsBody ?? false,
        traceHeaders: trace?.headers,
      }),
      classifyField,
      responseHeaders: this.limitHeaders,
      settlement: this.#settlement,
      publicNames: publicNamesOf(sentHost, host, stripped?.prefix),
      trace,
      requestId: this.report.requestId,
      onBodyOverLimit: () => this.report.rejected('body-too-large', errors.bodyTooLarge, bodyOverLimit),
      onUpgrade: this.#onUpgrade && ((...tunnel) => this.#upgrade(...tunnel)),
    })
  }

  /** @param prefix path prefix of the backend */
  #referencesOf(
    publicHost: string,
    prefix: string,
    sentHost = publicHost,
    route?: RoutedUpstream,
  ): ReferenceNames | undefined {
    const { headers } = this.request
    if (headers['destination'] === undefined && headers['if'] === undefined) return undefined
    const { stripPrefix, headerLines = '' } = route ?? {}
    if (!stripPrefix && prefix === '' && sentHost === publicHost) return undefined
    // Backends that read this header, such as Radicale, take the prefix off themselves.
    if (stripPrefix && /^x-script-name:/m.test(headerLines)) return undefined
    const toPrivate = (path: string): string | undefined => {
      const target = readTarget('GET', path, { headers: {} })
      if (typeof target === 'string' || target.authority !== undefined) return undefined
      const rest = stripPrefix ? stripPrefix(target)?.target : target.forwardTarget
      return rest === undefined ? undefined : prefix + rest
    }
    return { publicHost, sentHost, toPrivate, tagsLeft: MAX_TAGS }
  }

  /** The request ends when its tunnel opens: the 101 was written to the socket, and Node knows of no response. */
  #upgrade(...tunnel: Parameters<OnUpgrade>): void {
    this.#onUpgrade?.(...tunnel)
    const settlement = this.#settlement
    if (settlement?.lasts) {
      this.#settlement = undefined
      const { socket } = this.request
      if (socket.destroyed) settlement.finish()
      else socket.once('close', () => settlement.finish())
    }
    this.guard(() => this.finish(101))
  }

  /** The response has been sent, the client has gone, or a tunnel has taken its place. */
  protected override finish(status: number): void {
    this.isOver = true
    const isUnsent = this.#held !== undefined && this.forwarding === this.#held
    this.forwarding?.clientGone()
    this.#held?.drop()
    if (isUnsent) this.#settlement?.cancel()
    else this.#settlement?.finish()
    super.finish(status)
  }

  protected override onException(error: unknown): void {
    this.options.onException(error, this.request, this.response, this.report.requestId)
    this.forwarding?.clientGone()
    this.#held?.drop()
  }

  protected override abandonSlow(): void {
    this.forwarding?.abandon('the client sends its body too slowly')
  }
}
