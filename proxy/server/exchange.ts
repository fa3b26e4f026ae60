import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { PacedExchange } from '../connection/client-progress.ts'
import { settleResponse } from '../connection/pending-responses.ts'
import { chargesOf } from '../decide/charges.ts'
import { reportDecision } from '../decide/decision-report.ts'
import { Settlement } from '../decide/settlement.ts'
import { refuse, refuseUndecided } from '../decide/too-many-requests.ts'
import { forward, type Forwarding } from '../forward/forward.ts'
import { upstreamHeaders } from '../forward/upstream-headers.ts'
import { isPreflight } from '../http/cors.ts'
import { declaredLength, expectsContinue } from '../http/framing.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import {
  addToLocalReplies,
  breakOff,
  closeAfterResponse,
  onceOver,
  sendError,
  writeContinue,
  type LocalReplySource,
} from '../http/reply.ts'
import type { Charge, Decision } from '../limiter/limiter.ts'
import type { Policy } from '../policy.ts'
import { unknownClient, type Peer } from '../request/client-address.ts'
import {
  answerOptions,
  fieldsOf,
  localReply,
  remainingForwards,
  whyRejected,
} from '../request/local-replies.ts'
import { readRequestHead, type RejectedHead, type RequestHead } from '../request/request-head.ts'
import { givenRequestId } from '../request/request-id.ts'
import type { LoggedRequest } from '../telemetry/access-log.ts'
import type { ClientListName, Rejection } from '../telemetry/telemetry.ts'
import type { Claims } from '../tokens/token-claims.ts'
import type { HandlerOptions, OnUpgrade } from './handler-options.ts'

const tooManyReadings = 'what a rule counts by can be read in more than 8 ways'
const bodyOverLimit = 'the body is too large (MAX_BODY_SIZE)'

/** The way of one request, in the order of the methods: client, head, rules, decision, forward or refuse, finish. */
export class Exchange implements PacedExchange, LocalReplySource {
  readonly #options: HandlerOptions
  readonly request: ClientRequest
  readonly response: ClientResponse
  readonly #onUpgrade: OnUpgrade | undefined
  readonly #startedMs: number
  readonly #peer: Peer
  #requestId = ''
  #path = ''
  /** Whom the request counts as. */
  #client = unknownClient
  /** What the response tells of limits, whoever makes it: name, value, name, value… */
  #limitHeaders: readonly string[] = []
  #refusedBy: Policy | undefined
  #rejected: string | undefined
  #shadowRefusals: string[] | undefined
  /** What was reserved for the request. */
  #settlement: Settlement | undefined
  /** The list that decided about it. */
  #list: ClientListName | undefined
  forwarding: Forwarding | undefined
  isOver = false
  place = -1

  constructor(
    options: HandlerOptions,
    peer: Peer,
    request: ClientRequest,
    response: ClientResponse,
    onUpgrade: OnUpgrade | undefined,
  ) {
    this.#options = options
    this.request = request
    this.response = response
    this.#onUpgrade = onUpgrade
    this.#startedMs = options.now()
    this.#peer = peer
    options.slowClients.add(this)
    addToLocalReplies(response, this)
    onceOver(response, () => this.guard(() => this.#finish(response.headersSent ? response.statusCode : 0)))
  }

  /** Runs a step. An exception fails this request only. */
  guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#onException(error)
    }
  }

  begin(): void {
    this.#readClient()
    const head = this.#readHead()
    if (!head) return
    if (this.#options.clientLists.denies(this.#client, this.request)) return this.#deny()
    const policies = this.#matchRules(head)
    const claims = this.#options.tokens?.read(policies, this.request)
    if (!(claims instanceof Promise)) return this.#decide(policies, claims, head)
    claims
      .then((later) => this.#decide(policies, later, head))
      .catch((error: unknown) => this.#onException(error))
  }

  #decide(policies: readonly Policy[], claims: Claims | undefined, head: RequestHead): void {
    // The client disconnected while its token was verified: nothing is counted.
    if (this.isOver) return
    const charges = this.#chargesOf(policies, claims, head)
    if (!charges) return this.#reject('ambiguous-key', errors.badRequest, tooManyReadings)
    if (charges.length === 0) return this.#forward(head)

    const decision = this.#options.limiter.decide(charges)
    if (!(decision instanceof Promise)) return this.#act(decision, charges, head)
    decision
      .then((later) => this.#act(later, charges, head))
      .catch((error: unknown) => this.#onException(error))
  }

  #readClient(): void {
    const { addresses, makeRequestId } = this.#options
    this.#requestId = givenRequestId(this.request, this.#peer) ?? makeRequestId()
    this.#client = addresses.readClientAddress(this.#peer, this.request.headers[addresses.header])
  }

  /** Returns undefined where the request is answered already: it is rejected, or not for the backend. */
  #readHead(): RequestHead | undefined {
    const head = readRequestHead(this.request, this.#options, this.#onUpgrade !== undefined)
    if ('reason' in head) {
      this.#rejectHead(head)
      return undefined
    }
    this.#path = head.target.path
    const own = localReply(this.request, head.target)
    if (own !== undefined) {
      this.#answer(own)
      return undefined
    }
    const { addresses, onUntrustedProxy } = this.#options
    if (!this.#peer.trusted && this.request.headers[addresses.header] !== undefined)
      onUntrustedProxy(this.#peer.address)
    return head
  }

  #matchRules({ target, host }: RequestHead): readonly Policy[] {
    const { method = 'GET', headers } = this.request
    const { preflightRules, clientLists } = this.#options
    const rules = preflightRules && isPreflight(this.request) ? preflightRules : this.#options.rules
    const policies = rules.match(target, method, headers, host)
    const applying = clientLists.applying(policies, this.#client, this.request)
    if (applying.length < policies.length) this.#noteList('allow')
    return applying
  }

  #chargesOf(
    policies: readonly Policy[],
    claims: Claims | undefined,
    { target, host }: RequestHead,
  ): readonly Charge[] | undefined {
    const { addresses } = this.#options
    return chargesOf(policies, {
      client: this.#client,
      host,
      target,
      claims,
      request: this.request,
      addresses,
    })
  }

  /** `denyList`: refused before any rule. */
  #deny(): void {
    this.#noteList('deny')
    sendError(this.request, this.response, errors.forbidden, ['cache-control', 'no-store'])
  }

  #noteList(list: ClientListName): void {
    this.#list = list
    this.#options.telemetry.listed(list)
  }

  #act(decision: Decision, charges: readonly Charge[], head: RequestHead): void {
    this.#shadowRefusals = reportDecision(this.#options.telemetry, decision, charges)
    this.#options.throttledClients.note(charges, decision)
    const settlement = this.#settlementOf(decision)
    // The client disconnected during the decision: the request was counted, but is not forwarded.
    if (this.isOver) return settlement?.cancel()
    switch (decision.outcome) {
      case 'allowed':
        this.#settlement = settlement
        this.#limitHeaders = this.#options.limitHeaders(decision.states)
        return this.#forward(head)
      case 'refused':
        this.#refusedBy = decision.refusedBy
        refuse(this.request, this.response, decision, this.#options)
        return this.#logRefusal()
      case 'unavailable':
        refuseUndecided(this.request, this.response)
        return this.#logRefusal()
    }
  }

  #logRefusal(): void {
    const policy = this.#refusedBy?.name
    this.#options.onRefused?.({ ...this.#named, status: this.response.statusCode, policy })
  }

  #settlementOf(decision: Decision): Settlement | undefined {
    if (decision.outcome !== 'allowed' || !decision.states.some(({ reservation }) => reservation))
      return undefined
    const { limiter, limitHeaders, telemetry } = this.#options
    return new Settlement(limiter, decision.states, limitHeaders, (policy) =>
      telemetry.costUnreadable(policy),
    )
  }

  #forward({ target, host }: RequestHead): void {
    const { forwarder, upstreamPrefix, scheme, classifyField } = this.#options
    const { maxBodyBytes } = forwarder
    if (maxBodyBytes > 0 && (declaredLength(this.request) ?? 0) > maxBodyBytes) {
      this.#settlement?.cancel()
      return this.#reject('body-too-large', errors.bodyTooLarge, bodyOverLimit)
    }
    if (expectsContinue(this.request)) writeContinue(this.response)
    this.forwarding = forward(forwarder, {
      request: this.request,
      response: this.response,
      client: this.#client.prefix,
      target: upstreamPrefix + target.forwardTarget,
      upstreamHeaders: upstreamHeaders(classifyField, this.request.rawHeaders, {
        peerAddress: this.#peer.address,
        peerTrusted: this.#peer.trusted,
        clientAddress: this.#client.address,
        clientNamed: this.#client !== this.#peer.client,
        scheme,
        requestId: this.#requestId,
        host,
        protocolVersion: this.request.httpVersion,
        maxForwards: remainingForwards(this.request),
        bodyIsRead: this.#settlement?.readsBody ?? false,
      }),
      responseHeaders: this.#limitHeaders,
      settlement: this.#settlement,
      requestId: this.#requestId,
      onBodyOverLimit: () => this.#noteRejection('body-too-large', errors.bodyTooLarge, bodyOverLimit),
      onUpgrade: this.#onUpgrade && ((...tunnel) => this.#upgrade(...tunnel)),
    })
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
    this.guard(() => this.#finish(101))
  }

  /** The response has been sent, the client has gone, or a tunnel has taken its place. */
  #finish(status: number): void {
    const { telemetry, now, onFinished, slowClients } = this.#options
    this.isOver = true
    this.forwarding?.clientGone()
    this.#settlement?.finish()
    const nowMs = now()
    settleResponse(this.request, this.response, nowMs)
    slowClients.finish(this)
    const durationMs = nowMs - this.#startedMs
    telemetry.requestFinished(status, durationMs)
    onFinished?.({
      ...this.#named,
      status,
      durationMs,
      refusedBy: this.#refusedBy?.name,
      list: this.#list,
      rejected: this.#rejected,
      wouldBeRefusedBy: this.#shadowRefusals,
    })
  }

  #onException(error: unknown): void {
    this.#options.onException(error, this.request, this.response, this.#requestId)
    this.forwarding?.clientGone()
  }

  #answer(own: ErrorReply | 'options'): void {
    if (own !== 'options') return this.#reject('other', own, whyRejected(own))
    // The health check of a load balancer that cannot reach the admin listener.
    if (this.#path === '*' && this.#options.isStopping())
      return sendError(this.request, this.response, errors.stopping)
    answerOptions(this.request, this.response)
  }

  #rejectHead({ reason, reply, why, path }: RejectedHead): void {
    this.#path = path
    // It is unknown where the next request would begin.
    if (reason === 'framing') closeAfterResponse(this.request, this.response)
    this.#reject(reason, reply, why)
  }

  #reject(reason: Rejection, reply: ErrorReply, why: string): void {
    this.#noteRejection(reason, reply, why)
    const limits = this.#settlement ? this.#settlement.responseHeaders : this.#limitHeaders
    sendError(this.request, this.response, reply, [...fieldsOf(reply), ...limits])
  }

  #noteRejection(reason: Rejection, { status }: ErrorReply, why: string): void {
    this.#rejected = why
    this.#options.telemetry.requestRejected(reason)
    this.#options.onRejected(this.#requestId, status, why)
  }

  /** For the log. */
  get #named(): LoggedRequest {
    return {
      requestId: this.#requestId,
      method: this.request.method ?? '',
      path: this.#path,
      clientAddress: this.#client.address,
    }
  }

  get client(): string {
    return this.#client.prefix
  }

  /** What goes with each reply that is not the backend's. */
  get localReplyFields(): readonly string[] {
    const cors = this.#options.corsHeaders(this.request.headers.origin)
    return this.#requestId === '' ? cors : ['x-request-id', this.#requestId, ...cors]
  }

  onTooSlow(): void {
    this.guard(() => this.#endSlow())
  }

  #endSlow(): void {
    if (this.response.headersSent) return breakOff(this.response)
    this.forwarding?.abandon('the client sends its body too slowly')
    closeAfterResponse(this.request, this.response)
    const why = 'the body arrived too slowly (BODY_TIMEOUT, MIN_BODY_RATE)'
    this.#reject('timeout', errors.requestTimeout, why)
  }
}
