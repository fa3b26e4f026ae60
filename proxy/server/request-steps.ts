import type { ErrorReply } from '../../shared/error-replies.ts'
import { errors } from '../../shared/error-replies.ts'
import { noteRefusal } from '../limits/clients/banning.ts'
import type { AppliedBan } from '../limits/clients/client-entries.ts'
import type { ForwardProgress, PacedExchange } from '../http/connection/client-progress.ts'
import { chargesOf } from '../limits/charges.ts'
import { refuse, refuseBanned, refuseUndecided } from './too-many-requests.ts'
import { isPreflight } from '../http/fields/cors.ts'
import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import { addToLocalReplies, sendError, statusOf, type LocalReplySource } from '../http/fields/reply.ts'
import type { Charge, Decision } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import { fieldsOf, localReply, whyRejected } from '../request/local-replies.ts'
import type { RejectedHead, RequestHead } from '../request/request-head.ts'
import { givenRequestId } from '../request/request-id.ts'
import type { Rejection } from '../telemetry/telemetry.ts'
import type { ReadClaims } from '../limits/keys/tokens/token-reader.ts'
import { ExchangeReport } from './exchange-report.ts'
import type { HandlerOptions } from './handler-options.ts'

const tooManyReadings = 'what a rule counts by can be read in more than 8 ways'

/**
 * The steps that decide about a request, in the order of the methods: client, head, rules, decision, refuse, finish. What
 * is done with a request that is allowed is up to the subclass: to forward it, or to tell another proxy that it may.
 */
export abstract class RequestSteps implements PacedExchange, LocalReplySource {
  protected readonly options: HandlerOptions
  readonly request: ClientRequest
  readonly response: ClientResponse
  protected readonly peer: Peer
  protected readonly report: ExchangeReport
  /** What the response tells of limits, whoever makes it: name, value, name, value… */
  protected limitHeaders: readonly string[] = []
  abstract readonly forwarding: ForwardProgress | undefined
  isOver = false
  place = -1

  constructor(options: HandlerOptions, peer: Peer, request: ClientRequest, response: ClientResponse) {
    this.options = options
    this.request = request
    this.response = response
    this.peer = peer
    this.report = new ExchangeReport(options, request)
    options.slowClients.add(this)
    addToLocalReplies(response, this)
    response.onClose = () => this.guard(() => this.finish(response.headersSent ? this.status : 0))
  }

  protected abstract readHead(): RequestHead | RejectedHead

  /** A successful OPTIONS that is not for the backend. */
  protected abstract answerOptions(): void

  /** The request is allowed. */
  protected abstract pass(head: RequestHead): void

  /** What was reserved for the request is to be settled when its cost is known. */
  protected abstract keepReservations(decision: Decision): void

  /** The client has gone, or the request was answered: the rest of the body is not wanted. */
  protected abstract dropBody(): void

  /** Runs a step. An exception fails this request only. */
  guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.onException(error)
    }
  }

  begin(): void {
    this.#readClient()
    const head = this.#takeHead()
    if (!head) return
    const { clientLists, clientTable } = this.options
    if (clientLists.denies(this.report.client, this.request)) return this.#deny()
    const ban = clientTable.entries.findAddressBan(this.report.client.prefix)
    if (ban && !clientLists.allows(this.report.client, this.request)) return this.#refuseBanned(ban)
    const policies = this.#matchRules(head)
    const claims = this.options.tokens?.read(policies, this.request)
    if (!(claims instanceof Promise)) return this.#decide(policies, claims, head)
    claims
      .then((later) => this.#decide(policies, later, head))
      .catch((error: unknown) => this.onException(error))
  }

  #decide(policies: readonly Policy[], claims: ReadClaims | undefined, head: RequestHead): void {
    // The client disconnected while its token was verified: nothing is counted.
    if (this.isOver) return
    const written = this.#chargesOf(policies, claims, head)
    if (!written) return this.reject('ambiguous-key', errors.badRequest, tooManyReadings)
    const { entries } = this.options.clientTable
    const ban = entries.findKeyBan(written)
    if (ban) return this.#refuseBanned(ban)
    const charges = entries.withOverrides(written)
    if (charges.length === 0) this.pass(head)
    else this.charge(charges, head)
  }

  /** Has the limiter decide. */
  protected charge(charges: readonly Charge[], head: RequestHead): void {
    if (this.report.trace) this.report.asked(charges)
    const decision = this.options.limiter.decide(charges)
    if (!(decision instanceof Promise)) return this.#act(decision, charges, head)
    decision
      .then((later) => this.#act(later, charges, head))
      .catch((error: unknown) => this.onException(error))
  }

  #readClient(): void {
    const { addresses, makeRequestId } = this.options
    this.report.requestId = givenRequestId(this.request, this.peer) ?? makeRequestId()
    this.report.client = addresses.readClientAddress(this.peer, this.request.headers[addresses.header])
  }

  /** Returns undefined where the request is answered already: it is rejected, or not for the backend. */
  #takeHead(): RequestHead | undefined {
    const head = this.readHead()
    if ('reason' in head) {
      this.#rejectHead(head)
      return undefined
    }
    const { method, target } = head
    this.report.method = method
    this.report.path = target.path
    const own = localReply({ method, headers: this.request.headers }, target)
    if (own !== undefined) {
      if (own === 'options') this.answerOptions()
      else this.reject('other', own, whyRejected(own))
      return undefined
    }
    return head
  }

  #matchRules({ method, target, host }: RequestHead): readonly Policy[] {
    const { headers } = this.request
    const { preflightRules, clientLists } = this.options
    const rules = preflightRules && isPreflight({ method, headers }) ? preflightRules : this.options.rules
    const policies = rules.match(target, method, headers, host)
    const applying = clientLists.applying(policies, this.report.client, this.request)
    if (applying.length < policies.length) this.report.listed('allow')
    return applying
  }

  #chargesOf(
    policies: readonly Policy[],
    claims: ReadClaims | undefined,
    { target, host }: RequestHead,
  ): readonly Charge[] | undefined {
    const { addresses } = this.options
    return chargesOf(policies, {
      client: this.report.client,
      host,
      target,
      claims,
      request: this.request,
      addresses,
    })
  }

  /** `denyList`: refused before any rule. */
  #deny(): void {
    this.report.listed('deny')
    sendError(this.request, this.response, errors.forbidden, ['cache-control', 'no-store'])
  }

  #refuseBanned(ban: AppliedBan): void {
    this.report.listed('ban')
    refuseBanned(this.request, this.response, ban, this.options)
    this.report.refused(this.status, ban.policy)
  }

  #act(decision: Decision, charges: readonly Charge[], head: RequestHead): void {
    this.report.decided(decision, charges)
    if (decision.outcome === 'refused') noteRefusal(this.options.clientTable, charges, decision)
    this.keepReservations(decision)
    // The client disconnected during the decision, or sent what cannot be parsed behind the head and was answered: the
    // request was counted, but goes no further.
    if (this.isOver || this.response.headersSent) return this.giveBack()
    switch (decision.outcome) {
      case 'allowed':
        this.limitHeaders = this.options.limitHeaders(decision.states)
        return this.pass(head)
      case 'refused':
        refuse(this.request, this.response, decision, this.options)
        break
      case 'unavailable':
        refuseUndecided(this.request, this.response)
    }
    this.dropBody()
    this.report.refused(this.status, decision.outcome === 'refused' ? decision.refusedBy : undefined)
  }

  /** The request goes no further: what was reserved for it is given back. */
  protected giveBack(): void {
    this.dropBody()
  }

  /** The response has been sent, or the client has gone. */
  protected finish(status: number): void {
    const { now, slowClients } = this.options
    this.isOver = true
    const nowMs = now()
    slowClients.finish(this)
    this.report.finished(status, nowMs)
  }

  protected onException(error: unknown): void {
    this.options.onException(error, this.request, this.response, this.report.requestId)
    this.dropBody()
  }

  #rejectHead({ reason, reply, why, path }: RejectedHead): void {
    this.report.path = path
    // It is unknown where the next request would begin.
    if (reason === 'framing') this.response.closeAfterResponse()
    this.reject(reason, reply, why)
  }

  protected reject(reason: Rejection, reply: ErrorReply, why: string): void {
    this.report.rejected(reason, reply, why)
    sendError(this.request, this.response, reply, [...fieldsOf(reply), ...this.saidLimits])
    this.dropBody()
  }

  protected get saidLimits(): readonly string[] {
    return this.limitHeaders
  }

  /** The status code of the response, for metrics and logs. */
  protected get status(): number {
    return statusOf(this.response)
  }

  get client(): string {
    return this.report.client.prefix
  }

  /** What goes with each reply that is not the backend's. */
  get localReplyFields(): readonly string[] {
    const cors = this.options.corsHeaders(this.request.headers.origin)
    return this.report.requestId === '' ? cors : ['x-request-id', this.report.requestId, ...cors]
  }

  onTooSlow(): void {
    this.guard(() => this.#endSlow())
  }

  #endSlow(): void {
    if (this.response.headersSent) return this.response.breakOff()
    this.abandonSlow()
    this.response.closeAfterResponse()
    const why = 'the body arrived too slowly (BODY_TIMEOUT, MIN_BODY_RATE)'
    this.reject('timeout', errors.requestTimeout, why)
  }

  protected abandonSlow(): void {}
}
