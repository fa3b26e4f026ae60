import type { Socket } from 'node:net'
import { errors } from '../../../shared/error-replies.ts'
import { logsInConnection } from '../fields/connection-login.ts'
import { sendError } from '../fields/reply.ts'
import { acceptsTrailers, responseTrailers } from '../fields/trailers.ts'
import { acceptsUpgrade } from '../fields/websocket-handshake.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { UpstreamChannel, UpstreamExchange, UpstreamRequest } from '../upstream/exchange.ts'
import type { UpstreamSender } from '../upstream/servers/server-pool.ts'
import { UpstreamFailure, type FailureKind } from '../upstream/failure.ts'
import { ResponseSyntaxError, type ResponseHead } from '../upstream/response/response-head.ts'
import { failureMetrics, failureReply } from './failure-reply.ts'
import type { RequestToForward } from './request-to-forward.ts'
import { interimFields } from './interim-fields.ts'
import { RequestBody, type BodyHooks } from './body/request-body.ts'
import type { ReadAhead } from './body/response-body.ts'
import { ResponseDelivery } from './response-delivery.ts'
import { responseFields } from './response-fields.ts'
import { lengthWithoutContent, protocolToAskFor } from './upstream-headers.ts'

export type ForwarderOptions = {
  readonly upstream: UpstreamSender
  readonly telemetry: Telemetry
  /** Bytes a request's body may have; 0 means no limit. */
  readonly maxBodyBytes: number
  readonly readAhead: ReadAhead
  readonly now: () => number
  /** Called when a request failed at the backend; for the log. */
  readonly onFailure: (failure: UpstreamFailure, requestId: string) => void
}

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** How many times a request is sent at most if backends report that they have not begun to process it. */
const MAX_ATTEMPTS = 4

const invalidUpgradeReply = 'unexpected 101 Switching Protocols, or invalid Sec-WebSocket-Accept'

/**
 * Forwards a request to the backend and its response to the client, streaming both ways with back-pressure. It always
 * ends with a complete response, an error reply, or an aborted connection.
 */
export function forward(options: ForwarderOptions, forwarded: RequestToForward): Forwarding {
  const forwarding = new Forwarding(options, forwarded)
  options.upstream.send(forwarding)
  return forwarding
}

/** Forwards one request to the backend, and its response to the client; sends the request again if that is safe. */
export class Forwarding implements UpstreamExchange {
  readonly method: string
  readonly client: string
  isCancelled = false
  readonly #options: ForwarderOptions
  readonly #forwarded: RequestToForward
  readonly #body: RequestBody | undefined
  readonly #startedMs: number
  #connection: UpstreamChannel | undefined
  #headBytes: number | undefined
  /** How often a connection was given the request, which a server may have seen since the first time. */
  #attempts = 0
  readonly #delivery: ResponseDelivery

  constructor(options: ForwarderOptions, forwarded: RequestToForward) {
    this.#options = options
    this.#forwarded = forwarded
    this.#startedMs = options.now()
    this.method = forwarded.request.method
    this.client = forwarded.client
    this.#delivery = new ResponseDelivery(forwarded.response, options.readAhead)
    const { request, held } = forwarded
    const hooks: BodyHooks = {
      isWantedBy: (connection) => this.#connection === connection && connection.isWritable,
      overLimit: () => this.#rejectBody(),
    }
    this.#body = request.hasContent
      ? new RequestBody(request, options.maxBodyBytes, hooks, held, this.client)
      : undefined
  }

  /** Aborts the request to the backend and drops the rest of its response. Nothing is reported for it any more. */
  abandon(): void {
    this.isCancelled = true
    this.#body?.release()
    this.#delivery.drop()
    this.#refundIfUnsent()
    this.#connection?.abort('the request was abandoned')
  }

  get headBytes(): number {
    const { target, upstreamHeaders } = this.#forwarded
    return (this.#headBytes ??= target.length + upstreamHeaders.bytes)
  }

  get isBodyPending(): boolean {
    return this.#body !== undefined && !this.#body.isHere
  }

  /** Bytes of the body that were given to the backend's connection. */
  get sentBytes(): number {
    return this.#body?.bytes ?? 0
  }

  /** Whether the exchange is waiting for the client to send more of the request body. */
  get waitsForBody(): boolean {
    return this.#body?.isAwaited ?? false
  }

  /** Increases when the client sends some of the request body or reads some of the response. */
  get clientProgress(): number {
    return (this.#body?.bytes ?? 0) + this.#delivery.readsByClient
  }

  /** Buffered bytes of the backend's response, which have not been written to the client's response yet. */
  get bufferedBytes(): number {
    return this.#delivery.bufferedBytes
  }

  /** Whether the backend failed during its response, so that only the received part is left to write. */
  get isTruncated(): boolean {
    return this.#delivery.isTruncated
  }

  get upgrades(): boolean {
    return this.#forwarded.onUpgrade !== undefined
  }

  get isRetryable(): boolean {
    return !this.#body && !this.#delivery.hasBegun && !this.isCancelled && idempotentMethods.has(this.method)
  }

  get #responseHeaders(): readonly string[] {
    const { settlement, responseHeaders } = this.#forwarded
    return settlement ? settlement.responseHeaders : responseHeaders
  }

  start(connection: UpstreamChannel): void {
    const body = this.#body
    this.#connection = connection
    this.#attempts++
    if (body) return body.sendTo(connection, this.#headWith(true, body.length))
    connection.writeHead(this.#headWith(false, lengthWithoutContent(this.#forwarded.request, this.upgrades)))
  }

  #headWith(hasBody: boolean, contentLength: number | undefined): UpstreamRequest {
    const { request, target, upstreamHeaders, onUpgrade } = this.#forwarded
    const { authorization } = request.headers
    return {
      method: this.method,
      target,
      fields: upstreamHeaders,
      hasBody,
      contentLength,
      acceptsTrailers: acceptsTrailers(request),
      upgrade: onUpgrade && protocolToAskFor(request),
      logsIn: authorization !== undefined && logsInConnection(authorization),
    }
  }

  onInterimResponse(head: ResponseHead): void {
    const fields = interimFields(this.#publicHead(head))
    if (fields) this.#forwarded.response.writeInterimResponse(head.status, fields)
  }

  onHead(head: ResponseHead): void {
    const { request, response, settlement } = this.#forwarded
    // The gateway has answered meanwhile, for example because the rest of the request could not be parsed.
    if (response.headersSent) {
      this.isCancelled = true
      this.#body?.release()
      throw new ResponseSyntaxError('the request has been answered already')
    }
    if (head.status > 599 && request.httpVersionMajor > 1)
      throw new ResponseSyntaxError('status code not allowed in HTTP/2')
    this.#options.telemetry.upstreamAnswered(this.#options.now() - this.#startedMs)
    this.#forwarded.trace?.answered(head.status)
    this.#delivery.begin()
    if (this.#body) {
      this.#body.release()
      response.closeIfBodyUnread()
    }
    const passed = this.#publicHead(settlement ? settlement.onHead(head) : head)
    const fields = responseFields(passed, request, response, this.#responseHeaders)
    response.writeHead(head.status, fields)
  }

  onBody(chunk: Buffer, last: boolean): void {
    this.#forwarded.settlement?.onBody(chunk)
    this.#delivery.write(chunk, last, this.#connection)
  }

  onReadEnd(): void {
    this.#delivery.flushHead()
  }

  onTrailers(fields: readonly string[]): void {
    const { response, settlement } = this.#forwarded
    const passed = responseTrailers(settlement?.onTrailers(fields) ?? fields)
    if (passed.length > 0) response.addTrailers(passed)
  }

  onEnd(): void {
    const { request, settlement } = this.#forwarded
    this.#connection = undefined
    settlement?.onEnd()
    this.#forwarded.trace?.ended()
    this.#delivery.end()
    // The backend may have answered before the request body ended. The rest is read and dropped, because the next request follows it.
    if (this.#body) request.resume()
  }

  onUpgrade(head: ResponseHead, socket: Socket, rest: Buffer): void {
    const { request, settlement, onUpgrade } = this.#forwarded
    this.#connection = undefined
    if (onUpgrade && acceptsUpgrade(request, head)) {
      this.#options.telemetry.upstreamAnswered(this.#options.now() - this.#startedMs)
      this.#forwarded.trace?.answered(head.status)
      this.#forwarded.trace?.ended()
      const { fields } = this.#publicHead(settlement ? settlement.onHead(head) : head)
      onUpgrade({ ...head, fields: fields.concat(this.#responseHeaders) }, socket, rest)
      return
    }
    socket.destroy()
    this.onFailure(new UpstreamFailure('protocol', invalidUpgradeReply))
  }

  onFailure(failure: UpstreamFailure): void {
    const { request, response, held, requestId } = this.#forwarded
    this.#connection = undefined
    if (this.isCancelled) return
    if (this.#mayRetry(failure)) {
      this.#body?.pauseForRetry()
      this.#options.upstream.retry(this)
      return
    }
    this.#body?.release()
    if (failure.kind !== 'aborted') this.#options.telemetry.upstreamFailed(failureMetrics[failure.kind])
    if (failure.kind === 'exception') this.#options.telemetry.errorCaught('request')
    this.#options.onFailure(failure, requestId)
    this.#forwarded.trace?.failed(failure.kind)
    this.#refundIfUnsent()
    if (response.headersSent || this.#delivery.hasBegun) this.#truncateResponse(failure.kind)
    else {
      const reply = failureReply(failure)
      const retryAfter = reply.status === 503 ? ['retry-after', '1'] : []
      sendError(request, response, reply, [...this.#responseHeaders, ...retryAfter])
    }
    // Over HTTP/2, a request is not over before its body has been read, and reading may have been paused for the backend.
    held?.drop()
    if (this.#body) request.resume()
  }

  /** Refunds a request that got no connection: its client disconnected before, or none could be made. */
  #refundIfUnsent(): void {
    if (this.#attempts === 0) this.#forwarded.settlement?.cancel()
  }

  #publicHead(head: ResponseHead): ResponseHead {
    return this.#forwarded.publicHead?.(head) ?? head
  }

  #mayRetry({ isUnprocessed, onReusedConnection }: UpstreamFailure): boolean {
    if (!isUnprocessed) return onReusedConnection && this.#attempts < 2 && this.isRetryable
    if (this.#delivery.hasBegun || this.#attempts >= MAX_ATTEMPTS) return false
    return this.#body ? this.#body.isRetryable : true
  }

  /** Ends a response that has begun so that the client can tell that it is incomplete. */
  #truncateResponse(kind: FailureKind): void {
    // After an exception the state of the response is unknown.
    if (kind === 'exception') this.#forwarded.response.abort()
    else this.#delivery.truncate()
  }

  #rejectBody(): void {
    const { request, response } = this.#forwarded
    this.abandon()
    this.#forwarded.onBodyOverLimit()
    if (this.#delivery.hasBegun) this.#truncateResponse('aborted')
    else sendError(request, response, errors.bodyTooLarge, this.#responseHeaders)
  }
}
