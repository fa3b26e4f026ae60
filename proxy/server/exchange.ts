import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ForwardProgress, PacedExchange } from '../http/connection/client-progress.ts'
import {
  addToLocalReplies,
  sendError,
  statusOf,
  type LocalReply,
  type LocalReplySource,
} from '../http/fields/reply.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import { recordRefusal } from '../limits/clients/banning.ts'
import type { AppliedBan } from '../limits/clients/client-entries.ts'
import type { Denial } from '../limits/clients/lists/client-lists.ts'
import { decideRequest } from '../limits/decide.ts'
import type { RequestContext, RequestedCharges, Verdict } from '../limits/verdict.ts'
import type { SentBody } from '../limits/keys/body/body-values.ts'
import type { Charge, Decision, PolicyState, Turn } from '../limits/limiter.ts'
import { hiddenHeaders, type Policy } from '../policy.ts'
import { peerOf, unknownClient, type Peer } from '../request/addresses/client-address.ts'
import { answerOptions, fieldsOf } from '../request/local-replies.ts'
import { readRequestHead, type RejectedHead, type RequestHead } from '../request/request-head.ts'
import type { Rejection, UnreadKey } from '../telemetry/telemetry.ts'
import { AuthRequest } from './auth-request.ts'
import { ExchangeReport, givenRequestId } from './exchange-report.ts'
import { ForwardedRequest } from './forwarded-request.ts'
import type { Handler, HandlerOptions, LiveOptions, OnUpgrade } from './handler-options.ts'
import { routingRule } from './routing.ts'
import { refuse, refuseBanned, refuseUndecided, statesAfter } from '../limits/replies.ts'

const none: readonly never[] = []

/**
 * A request from its head to its end: decides about it once, and carries out the verdict. This class has all states of a request;
 * `AuthRequest`, `ForwardedRequest` and `ExchangeReport` have the parts that are concepts of their own.
 */
class Exchange implements PacedExchange, LocalReplySource, RequestContext {
  readonly options: HandlerOptions
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly peer: Peer
  readonly report: ExchangeReport
  /** Opens the tunnel of a WebSocket handshake or another upgrade; undefined for any other request. */
  onUpgrade: OnUpgrade | undefined
  /** Reads the original request of an auth request; undefined for a request to the backend. */
  #auth: AuthRequest | undefined
  /** The forwarded request; created when the body is read for the decision, or when the request is sent to the backend. */
  #forwarded: ForwardedRequest | undefined
  /** Set while the request is delayed until its turn. */
  #turn: Turn | undefined
  /** The limit headers of the response, local or from the backend: name, value, name, value… */
  limitHeaders: readonly string[] = none
  isFinished = false
  place = -1

  clientAddress = unknownClient
  head: RequestHead | undefined
  matched: readonly Policy[] = none
  applying: readonly Policy[] = none
  charges: readonly Charge[] = none

  constructor(options: HandlerOptions, peer: Peer, request: ClientRequest, response: ClientResponse) {
    this.options = options
    this.request = request
    this.response = response
    this.peer = peer
    this.report = new ExchangeReport(options, this)
    options.slowClients.add(this)
    addToLocalReplies(response, this)
    response.onClose = () => this.guard(() => this.finish(response.headersSent ? this.status : 0))
  }

  /** Decides about the request, and forwards it if it is allowed. @param onUpgrade opens the request's tunnel, if it asks for one */
  begin(onUpgrade: OnUpgrade | undefined): void {
    this.onUpgrade = onUpgrade
    this.#decide()
  }

  /** Decides about the original request of an auth request, and answers the proxy that asks. */
  beginAuth(auth: AuthRequest): void {
    this.#auth = auth
    this.#decide()
  }

  #decide(): void {
    this.report.requestId = givenRequestId(this.request, this.peer) ?? this.options.makeRequestId()
    const verdict = decideRequest(this, this.options)
    if (this.applying.length < this.matched.length) this.report.listed('allow')
    if (!(verdict instanceof Promise)) return this.#applyVerdict(verdict)
    verdict.then((later) => this.#applyVerdict(later)).catch((error: unknown) => this.onException(error))
  }

  #applyVerdict(verdict: Verdict): void {
    switch (verdict.outcome) {
      case 'rejected':
        return this.#rejectRequest(verdict)
      case 'answered':
        return this.#answerOptions()
      case 'denied':
        return this.#deny(verdict.by)
      case 'banned':
        return this.#refuseBanned(verdict.ban)
      case 'busy':
        return this.#answerBusy()
      case 'gone':
        return
      case 'forward':
        return this.#forward(none)
      case 'allowed':
        this.#recordDecision(verdict)
        return this.#allow(verdict)
      case 'refused':
        this.#recordDecision(verdict)
        return this.#refuse(verdict)
      case 'unavailable':
        this.#recordDecision(verdict)
        return this.#refuseUndecided()
    }
  }

  readHead(): RequestHead | RejectedHead {
    if (this.#auth) return this.#auth.readHead(this.clientAddress)
    const head = readRequestHead(this.request, this.options, this.onUpgrade !== undefined)
    const { addresses, onUntrustedProxy } = this.options
    if (!this.peer.trusted && !('rejection' in head) && this.request.headers[addresses.header] !== undefined)
      onUntrustedProxy(this.peer.address)
    return head
  }

  readBody(): SentBody | 'gone' | Promise<SentBody | 'gone'> {
    return this.#forwardedRequest().readBody()
  }

  onUnreadKey(policy: Policy, reason: UnreadKey): void {
    this.options.telemetry.keyUnread(policy, reason)
    this.options.onKeyUnread(policy, reason, this.report.requestId)
  }

  onPlan(policy: Policy, plan: string): void {
    this.report.planRead(policy, plan)
  }

  readUnits(charges: readonly Charge[]): RequestedCharges | Promise<RequestedCharges> {
    return this.#forwardedRequest().readUnits(charges)
  }

  onAsk(charges: readonly Charge[]): void {
    if (this.report.trace) this.report.asked(charges)
  }

  get isForwardedByAnother(): boolean {
    return this.#auth !== undefined
  }

  /** Whether the client disconnected during the decision, or sent an invalid body and was answered. Its request stays counted. */
  get isAnswered(): boolean {
    return this.isFinished || this.response.headersSent
  }

  #recordDecision(decision: Decision): void {
    if (this.options.devices) this.report.devicesRead(this.charges)
    this.report.decided(decision, this.charges)
  }

  #allow({ states, turn }: Decision & { outcome: 'allowed' }): void {
    if (states.some(({ reservation }) => reservation) || this.#hidesHeaders)
      this.#forwardedRequest().settleAfterwards(states)
    if (this.isAnswered) return this.#giveBack(turn)
    this.limitHeaders = this.options.limitHeaders(states)
    if (turn) return this.#wait(turn, states)
    return this.#forward(states)
  }

  #refuse(refusal: Decision & { outcome: 'refused' }): void {
    const { refusedBy } = refusal
    if (refusedBy.ban) recordRefusal(this.options.banning, this.charges, refusal)
    if (!this.isAnswered) {
      refuse(this.request, this.response, refusal, this.options)
      this.report.refused(this.status, refusedBy)
    }
    this.#dropBody()
  }

  #refuseUndecided(): void {
    if (!this.isAnswered) {
      refuseUndecided(this.request, this.response)
      this.report.refused(this.status, undefined)
    }
    this.#dropBody()
  }

  /** @param states the states of the policies that count the request; empty if no rule does */
  #forward(states: readonly PolicyState[]): void {
    this.report.routedBy = routingRule(this.options, states)
    if (this.#auth) return this.#auth.allow(this.limitHeaders)
    if (!this.head) throw new Error('the head of the request was not read')
    this.#forwardedRequest().forward(this.head)
  }

  /**
   * Whether a policy hides headers of the response. It does so even for a request that it has not counted, because the request is over a
   * limit that refuses nothing, or because Redis is unavailable.
   */
  get #hidesHeaders(): boolean {
    return this.charges.some(({ policy }) => hiddenHeaders(policy).length > 0)
  }

  /** Waits for the request's turn. Until then it is not forwarded, and the wait does not count against the client in `SlowClients`. */
  #wait(turn: Turn, states: readonly PolicyState[]): void {
    this.#turn = turn
    this.report.delayStarted()
    turn.wait((waitedMs) =>
      this.guard(() => {
        this.#turn = undefined
        this.report.delayEnded()
        if (this.isAnswered) return this.#forwarded?.cancel()
        const later = statesAfter(states, waitedMs)
        this.limitHeaders = this.options.limitHeaders(later)
        this.#forwarded?.waited(later)
        this.#forward(states)
      }),
    )
  }

  /** Leaves the queue and refunds the reservations of an allowed request that is not forwarded. */
  #giveBack(turn: Turn | undefined): void {
    turn?.leave()
    this.#forwarded?.cancel()
  }

  #forwardedRequest(): ForwardedRequest {
    return (this.#forwarded ??= new ForwardedRequest(this))
  }

  #rejectRequest({ rejection, reply, reason, path }: Verdict & { outcome: 'rejected' }): void {
    this.report.rejectedPath = path
    // It is unknown where the body ends and the next request would begin.
    if (rejection === 'framing') this.response.closeAfterResponse()
    this.reject(rejection, reply, reason)
  }

  #answerOptions(): void {
    // `OPTIONS *` is the health check of load balancers that cannot reach the admin listener.
    if (this.head?.target.path === '*' && this.options.isStopping())
      return sendError(this.request, this.response, errors.stopping)
    answerOptions(this.response)
  }

  /** Refuses a client that `denyList` or CrowdSec denies, before any rule applies. */
  #deny(by: Denial): void {
    this.report.denied(by)
    sendError(this.request, this.response, errors.forbidden, ['cache-control', 'no-store'])
  }

  #refuseBanned(ban: AppliedBan): void {
    this.report.listed('ban')
    refuseBanned(this.request, this.response, ban, this.options)
    this.report.refused(this.status, ban.policy, ban.partitionKey)
    this.#dropBody()
  }

  /** Answers if the gateway lacks memory for the body. This counts neither as a refusal nor towards a ban. */
  #answerBusy(): void {
    const fields = ['retry-after', '1', 'cache-control', 'no-store']
    sendError(this.request, this.response, errors.gatewayBusy, fields)
    this.#dropBody()
  }

  reject(rejection: Rejection, reply: ErrorReply, reason: string): void {
    this.report.rejected(rejection, reply, reason)
    const limits = this.#forwarded?.limitHeaders ?? this.limitHeaders
    sendError(this.request, this.response, reply, [...fieldsOf(reply), ...limits])
    this.#dropBody()
  }

  /** Drops the held part of the body and the part still to come, because an HTTP/2 request does not end before its body has been read. */
  #dropBody(): void {
    this.#forwarded?.dropBody()
  }

  /** Runs a step. An exception only fails this request. */
  guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.onException(error)
    }
  }

  onException(error: unknown): void {
    this.options.onException(error, this.request, this.response, this.report.requestId)
    this.#forwarded?.fail()
  }

  /** Called when the response has been sent, the client has disconnected, or a tunnel has taken the response's place. */
  finish(status: number): void {
    const { now, slowClients } = this.options
    this.isFinished = true
    if (this.#turn) {
      this.report.delayEnded()
      this.#giveBack(this.#turn)
      this.#turn = undefined
    }
    this.#forwarded?.finish()
    const nowMs = now()
    slowClients.finish(this)
    this.report.finished(status, nowMs, this.#isIncomplete)
  }

  /** Whether the response was cut off after its head. */
  get #isIncomplete(): boolean {
    return this.response.headersSent && !this.response.writableEnded
  }

  onTooSlow(): void {
    this.guard(() => this.#endSlow())
  }

  #endSlow(): void {
    if (this.response.headersSent) return this.response.abort()
    this.#forwarded?.abandon()
    this.response.closeAfterResponse()
    const reason = 'the body arrived too slowly (BODY_TIMEOUT, MIN_BODY_RATE)'
    this.reject('timeout', errors.requestTimeout, reason)
  }

  get forwarding(): ForwardProgress | undefined {
    return this.#forwarded?.delivery
  }

  get client(): string {
    return this.clientAddress.prefix
  }

  get isOnSharedConnection(): boolean {
    return this.peer.trusted && this.request.httpVersionMajor === 2
  }

  /** The status code of the response, for metrics and logs. */
  get status(): number {
    return this.#auth?.refusedWith ?? statusOf(this.response)
  }

  /** Headers added to each local reply. */
  get localReplyFields(): readonly string[] {
    const cors = this.options.corsHeaders?.(this.request.headers.origin) ?? none
    const { requestId } = this.report
    const fields = requestId === '' ? cors : ['x-request-id', requestId, ...cors]
    return this.#auth ? [...fields, ...this.#auth.statusFields] : fields
  }

  adaptError(reply: LocalReply): LocalReply {
    return this.#auth?.adaptError(reply) ?? reply
  }
}

/**
 * Creates a handler that decides about a request, then forwards or refuses it. A request that matches no rule is forwarded without asking
 * the store. A request whose connection has already closed is dropped.
 *
 * The handler throws only if a request cannot be started. Exceptions of its steps, synchronous or not, are passed to `onException`.
 */
export function createHandler(live: LiveOptions): Handler {
  return (request, response, onUpgrade) => {
    const { options } = live
    const peer = peerOf(request, options)
    if (!peer) return void request.socket.destroy()
    const exchange = new Exchange(options, peer, request, response)
    exchange.guard(() => exchange.begin(onUpgrade))
  }
}

/** Creates a handler of auth requests. It decides about the original request as if it had arrived here, and answers with the decision. */
export function createAuthHandler(live: LiveOptions): Handler {
  return (request, response) => {
    const { options } = live
    const peer = peerOf(request, options)
    if (!peer) return void request.socket.destroy()
    const exchange = new Exchange(options, peer, request, response)
    exchange.guard(() => exchange.beginAuth(new AuthRequest(options, peer, request, response)))
  }
}
