import type { Socket } from 'node:net'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { OnException } from './error-boundary.ts'
import { chargesOf } from '../decide/charges.ts'
import type { Peer } from '../request/client-address.ts'
import { connectionOf, peerOf, type PeerOptions } from '../request/connection-peer.ts'
import { reportDecision } from '../decide/decision-report.ts'
import type { PacedExchange, SlowClients } from '../connection/slow-clients.ts'
import type { RequestFieldClassifier } from '../http/header-roles.ts'
import { forward, type Forwarding, type ForwarderOptions } from '../forward/forward.ts'
import { declaredLength, expectsContinue } from '../http/framing.ts'
import type { ThrottledClients } from '../decide/throttled-clients.ts'
import type { Charge, Decision, Limiter } from '../limiter/limiter.ts'
import { settleResponse } from '../connection/pending-responses.ts'
import { allow, fieldsOf, remainingForwards, localReply } from '../request/local-replies.ts'
import type { Policy } from '../policy.ts'
import { rateLimitHeaders, refuse, refuseUndecided } from '../decide/too-many-requests.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import {
  breakOff,
  breakOffConnection,
  closeAfterResponse,
  endAfterResponse,
  onceOver,
  sendError,
  writeContinue,
  writeHead,
} from '../http/reply.ts'
import {
  readRequestHead,
  type HeadOptions,
  type RejectedHead,
  type RequestHead,
} from '../request/request-head.ts'
import type { RuleTable } from '../rules/rule-table.ts'
import type { Rejection, Telemetry } from '../telemetry/telemetry.ts'
import type { ResponseHead } from '../upstream/response-head.ts'
import { upstreamHeaders } from '../forward/upstream-headers.ts'

export type HandlerOptions = HeadOptions &
  PeerOptions & {
    readonly rules: RuleTable
    readonly limiter: Limiter
    readonly throttledClients: Pick<ThrottledClients, 'note'>
    readonly slowClients: SlowClients
    readonly forwarder: ForwarderOptions
    readonly classifyField: RequestFieldClassifier
    readonly telemetry: Telemetry
    /** Called with an exception that a step of the request threw. */
    readonly onException: OnException
    /** Path prefix of the backend, without a trailing slash; empty for none. */
    readonly upstreamPrefix: string
    readonly scheme: 'http' | 'https'
    readonly makeRequestId: () => string
    readonly now: () => number
    /** True once the gateway is shutting down. */
    readonly isStopping: () => boolean
    /**
     * Called with the peer's address for each request whose `X-Forwarded-For` is ignored because the peer is not
     * trusted.
     */
    readonly onUntrustedProxy: (peerAddress: string) => void
    /** Called for each malformed or oversized request, which is answered before any rule applies; for the log. */
    readonly onRejected: (requestId: string, status: number, why: string) => void
    /** Called once for each finished request; undefined without access log. */
    readonly onFinished: ((exchange: Finished) => void) | undefined
  }

/** A finished request, for the access log. */
export type Finished = {
  readonly requestId: string
  readonly method: string
  readonly path: string
  readonly clientAddress: string
  readonly status: number
  readonly durationMs: number
  readonly refusedBy: string | undefined
  /** Why the request was rejected as malformed or oversized. */
  readonly rejected: string | undefined
  readonly wouldBeRefusedBy: readonly string[] | undefined
}

/** Called when the backend accepts a WebSocket handshake: the tunnel takes the place of the response. */
export type OnUpgrade = (head: ResponseHead, upstream: Socket, rest: Buffer) => void

export type Handler = (request: ClientRequest, response: ClientResponse, onUpgrade?: OnUpgrade) => void

/**
 * Handles a request: client address, target, rules, one decision, then forward or refuse. A request that matches no
 * rule is forwarded without asking the store. A request whose connection has already closed is dropped.
 *
 * Throws only if a request cannot be started; exceptions of its steps, synchronous or not, go to `onException`.
 */
export function createHandler(options: HandlerOptions): Handler {
  return (request, response, onUpgrade) => {
    const peer = peerOf(request, options)
    if (!peer) {
      connectionOf(request).destroy()
      return
    }
    const exchange = new Exchange(options, peer, request, response, onUpgrade)
    exchange.guard(() => exchange.begin())
  }
}

class Exchange implements PacedExchange {
  readonly #options: HandlerOptions
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #onUpgrade: OnUpgrade | undefined
  readonly #startedMs: number
  readonly #peer: Peer
  #requestId = ''
  #path = ''
  #clientAddress = ''
  /** Whom the request counts as. */
  #client = ''
  /** The `RateLimit` headers for the response, whoever makes it: name, value, name, value… */
  #limitHeaders: readonly string[] = []
  #refusedBy: Policy | undefined
  #rejected: string | undefined
  #shadowRefusals: string[] | undefined
  #forwarding: Forwarding | undefined
  #over = false
  place = -1

  constructor(
    options: HandlerOptions,
    peer: Peer,
    request: ClientRequest,
    response: ClientResponse,
    onUpgrade: OnUpgrade | undefined,
  ) {
    this.#options = options
    this.#request = request
    this.#response = response
    this.#onUpgrade = onUpgrade
    this.#startedMs = options.now()
    this.#peer = peer
    options.slowClients.add(this)
    onceOver(response, () => this.guard(() => this.#end(response.headersSent ? response.statusCode : 0)))
  }

  get waitsFor(): 'body' | 'response' | undefined {
    const response = this.#response
    // The request is finished, but the rest of a short body is still read and dropped, so that the connection can be
    // reused.
    if (this.#over) return 'body'
    if (response.writableEnded) return 'response'
    if (response.headersSent)
      return response.writableNeedDrain || this.#forwarding?.isCut ? 'response' : undefined
    return this.#forwarding?.waitsForBody ? 'body' : undefined
  }

  get progress(): number {
    return this.#forwarding?.clientProgress ?? 0
  }

  get heldBytes(): number {
    return (this.#forwarding?.heldBytes ?? 0) + this.#response.writableLength
  }

  get client(): string {
    return this.#client
  }

  get connection(): object {
    return connectionOf(this.#request)
  }

  breakOffConnection(): void {
    this.guard(() => breakOffConnection(this.#response))
  }

  onTooSlow(): void {
    this.guard(() => this.#endSlow())
  }

  #endSlow(): void {
    if (this.#over) {
      this.#options.slowClients.delete(this)
      this.#request.socket.destroy()
    } else if (this.#response.headersSent) breakOff(this.#response)
    else {
      this.#forwarding?.abandon('the client sends its body too slowly')
      closeAfterResponse(this.#request, this.#response)
      this.#reject(
        'timeout',
        errors.requestTimeout,
        'the body arrived too slowly (BODY_TIMEOUT, MIN_BODY_RATE)',
      )
    }
  }

  /** Runs a step. An exception fails this request only. */
  guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#onException(error)
    }
  }

  #onException(error: unknown): void {
    this.#options.onException(error, this.#request, this.#response, this.#requestId)
    this.#forwarding?.clientGone()
  }

  begin(): void {
    const { rules, addresses, limiter } = this.#options
    const { method = 'GET', headers } = this.#request
    this.#requestId = this.#readRequestId()
    const forwardedFor = headers['x-forwarded-for']
    const client = addresses.readClientAddress(this.#peer, forwardedFor)
    this.#clientAddress = client.address
    this.#client = client.prefix
    const head = readRequestHead(this.#request, this.#options, this.#onUpgrade !== undefined)
    if ('reason' in head) return this.#rejectHead(head)
    const { target } = head
    this.#path = target.path
    const own = localReply(this.#request, target)
    if (own !== undefined) return this.#answer(own)
    if (forwardedFor !== undefined && !this.#peer.trusted) this.#options.onUntrustedProxy(this.#peer.address)

    const policies = rules.match(target, method, headers)
    if (policies.length === 0) return this.#forward(head)

    const charges = chargesOf(policies, client, this.#request)
    if (charges.length === 0) return this.#forward(head)

    const decision = limiter.decide(charges)
    if (!(decision instanceof Promise)) return this.#act(decision, charges, head)
    decision
      .then((later) => this.#act(later, charges, head))
      .catch((error: unknown) => this.#onException(error))
  }

  #act(decision: Decision, charges: readonly Charge[], head: RequestHead): void {
    this.#shadowRefusals = reportDecision(this.#options.telemetry, decision, charges)
    this.#options.throttledClients.note(charges, decision)
    // The client disconnected during the decision: the request was counted, but is not forwarded.
    if (this.#over) return
    switch (decision.outcome) {
      case 'allowed':
        this.#limitHeaders = rateLimitHeaders(decision.states)
        return this.#forward(head)
      case 'refused':
        this.#refusedBy = decision.refusedBy
        return refuse(this.#request, this.#response, decision.states)
      case 'unavailable':
        return refuseUndecided(this.#request, this.#response)
    }
  }

  #forward({ target, host }: RequestHead): void {
    const { forwarder, upstreamPrefix, scheme, classifyField } = this.#options
    const { maxBodyBytes } = forwarder
    if (maxBodyBytes > 0 && (declaredLength(this.#request) ?? 0) > maxBodyBytes)
      return this.#reject('body-too-large', errors.bodyTooLarge, bodyOverLimit)
    if (expectsContinue(this.#request)) writeContinue(this.#response)
    this.#forwarding = forward(forwarder, {
      request: this.#request,
      response: this.#response,
      client: this.#client,
      target: upstreamPrefix + target.forwardTarget,
      upstreamHeaders: upstreamHeaders(classifyField, this.#request.rawHeaders, {
        peerAddress: this.#peer.address,
        peerTrusted: this.#peer.trusted,
        clientAddress: this.#clientAddress,
        scheme,
        requestId: this.#requestId,
        host,
        protocolVersion: this.#request.httpVersion,
        maxForwards: remainingForwards(this.#request),
      }),
      responseHeaders: this.#limitHeaders,
      requestId: this.#requestId,
      onBodyOverLimit: () => this.#noteRejection('body-too-large', errors.bodyTooLarge, bodyOverLimit),
      onUpgrade: this.#onUpgrade && ((...tunnel) => this.#upgrade(...tunnel)),
    })
  }

  /** The request ends when its tunnel opens: the 101 was written to the socket, and Node knows of no response. */
  #upgrade(...tunnel: Parameters<OnUpgrade>): void {
    this.#onUpgrade?.(...tunnel)
    this.guard(() => this.#end(101))
  }

  #rejectHead({ reason, reply, why, path }: RejectedHead): void {
    this.#path = path
    // It is unknown where the next request would begin.
    if (reason === 'framing') closeAfterResponse(this.#request, this.#response)
    this.#reject(reason, reply, why)
  }

  #reject(reason: Rejection, reply: ErrorReply, why: string): void {
    this.#noteRejection(reason, reply, why)
    sendError(this.#request, this.#response, reply, [...fieldsOf(reply), ...this.#limitHeaders])
  }

  #noteRejection(reason: Rejection, { status }: ErrorReply, why: string): void {
    this.#rejected = why
    this.#options.telemetry.requestRejected(reason)
    this.#options.onRejected(this.#requestId, status, why)
  }

  #answer(own: ErrorReply | 'options'): void {
    if (own !== 'options')
      return this.#reject(
        'other',
        own,
        own === errors.badRequest ? 'Max-Forwards is not a number' : 'TRACE is not supported',
      )
    // The health check of a load balancer that cannot reach the admin listener.
    if (this.#path === '*' && this.#options.isStopping())
      return sendError(this.#request, this.#response, errors.stopping)
    endAfterResponse(this.#request, this.#response)
    writeHead(this.#response, 204, [...allow])
    this.#response.end()
  }

  /** The id that a trusted proxy sends is kept, so that a request has the same id in all logs. */
  #readRequestId(): string {
    const given = this.#peer.trusted ? this.#request.headers['x-request-id'] : undefined
    return typeof given === 'string' && requestIdSyntax.test(given) ? given : this.#options.makeRequestId()
  }

  #end(status: number): void {
    const { telemetry, now, onFinished, slowClients } = this.#options
    this.#over = true
    this.#forwarding?.clientGone()
    const nowMs = now()
    settleResponse(this.#request, this.#response, nowMs)
    if (isBodyAwaited(this.#request, this.#response)) this.#awaitBody()
    else slowClients.delete(this)
    const durationMs = nowMs - this.#startedMs
    telemetry.requestFinished(status, durationMs)
    onFinished?.({
      requestId: this.#requestId,
      method: this.#request.method ?? '',
      path: this.#path,
      clientAddress: this.#clientAddress,
      status,
      durationMs,
      refusedBy: this.#refusedBy?.name,
      rejected: this.#rejected,
      wouldBeRefusedBy: this.#shadowRefusals,
    })
  }

  #awaitBody(): void {
    const { socket } = this.#request
    const leave = (): void => {
      this.#options.slowClients.delete(this)
      socket.off('close', leave)
    }
    this.#request.once('close', leave)
    socket.once('close', leave)
  }
}

const bodyOverLimit = 'the body is too large (MAX_BODY_SIZE)'
const requestIdSyntax = /^[A-Za-z0-9._:/=+-]{1,128}$/

/** Whether a persistent HTTP/1 connection still waits for the rest of the request body. */
function isBodyAwaited(
  { httpVersionMajor, complete, socket }: ClientRequest,
  response: ClientResponse,
): boolean {
  return httpVersionMajor === 1 && !complete && response.shouldKeepAlive && !socket.destroyed
}
