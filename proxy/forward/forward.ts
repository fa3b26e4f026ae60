import type { Socket } from 'node:net'
import { errors } from '../../shared/error-replies.ts'
import { hasContent } from '../http/framing.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import {
  breakOff,
  cutShort,
  endAfterResponse,
  endResponse,
  flushHead,
  sendError,
  writeEarlyHints,
  writeHead,
} from '../http/reply.ts'
import { acceptsHandshake } from '../http/websocket-handshake.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { UpstreamChannel, UpstreamExchange } from '../upstream/exchange.ts'
import { UpstreamFailure, type FailureKind } from '../upstream/failure.ts'
import type { UpstreamPool } from '../upstream/pool.ts'
import { ResponseSyntaxError, type ResponseHead } from '../upstream/response-head.ts'
import { failureMetrics, failureReply } from './failure-reply.ts'
import { RequestBody } from './request-body.ts'
import { ResponseBody, type ReadAhead } from './response-body.ts'
import { responseFields, valuesOf } from './response-fields.ts'
import { endOfHead } from './upstream-headers.ts'

export type ForwarderOptions = {
  readonly pool: UpstreamPool
  readonly telemetry: Telemetry
  /** Bytes a request's body may have; 0 is no limit. */
  readonly maxBodyBytes: number
  readonly readAhead: ReadAhead
  readonly now: () => number
  /** A request failed at the backend; for the log. */
  readonly onFailure: (failure: UpstreamFailure, requestId: string) => void
}

/** An allowed request, and the headers to add to it and to its response. */
export type ForwardRequest = {
  readonly request: ClientRequest
  readonly response: ClientResponse
  /** Whose share of the connections to the backend it uses: an IPv4 address or an IPv6 network. */
  readonly client: string
  /** Path and query for the request line. */
  readonly target: string
  /** Header lines for the backend, each ending in CRLF, without those that frame the body. */
  readonly upstreamHeaders: string
  /** Name, value, name, value… to add to the response, where no `settlement` says them. */
  readonly responseHeaders: readonly string[]
  /** What was reserved for the request, to be settled by its response. */
  readonly settlement: ResponseSettlement | undefined
  readonly requestId: string
  /** Called when a streamed body exceeds `maxBodyBytes`. */
  readonly onBodyOverLimit: () => void
  /** For a WebSocket handshake: called when the backend accepts it. */
  readonly onUpgrade: ((head: ResponseHead, upstream: Socket, rest: Buffer) => void) | undefined
}

/** Hears of the response as it passes by. */
export type ResponseSettlement = {
  /** Name, value, name, value… to add to the response, by what is known so far. */
  readonly responseHeaders: readonly string[]
  /** Returns the response as the client is to get it. */
  onHead(head: ResponseHead): ResponseHead
  onBody(chunk: Buffer): void
  onEnd(): void
  onFailure(kind: FailureKind): void
}

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

const unagreed = 'unexpected 101 Switching Protocols, or invalid Sec-WebSocket-Accept'

/**
 * Forwards a request to the backend and its response to the client, streaming both ways with back-pressure. It always
 * ends with a complete response, an error reply, or an aborted connection.
 */
export function forward(options: ForwarderOptions, forwarded: ForwardRequest): Forwarding {
  const forwarding = new Forwarding(options, forwarded)
  options.pool.send(forwarding)
  return forwarding
}

export class Forwarding implements UpstreamExchange {
  readonly method: string
  readonly client: string
  cancelled = false
  readonly #options: ForwarderOptions
  readonly #forwarded: ForwardRequest
  readonly #body: RequestBody | undefined
  readonly #startedMs: number
  #connection: UpstreamChannel | undefined
  #retried = false
  #responding = false
  #flushed = false
  /** Set once the client reads more slowly than the backend sends. */
  #slowBody: ResponseBody | undefined
  /** The backend failed during its response; what it sent before is still being written to the client. */
  #isCut = false

  constructor(options: ForwarderOptions, forwarded: ForwardRequest) {
    this.#options = options
    this.#forwarded = forwarded
    this.#startedMs = options.now()
    this.method = forwarded.request.method ?? 'GET'
    this.client = forwarded.client
    this.#body = hasContent(forwarded.request)
      ? new RequestBody(forwarded.request, options.maxBodyBytes, {
          isWantedBy: (connection) => this.#connection === connection && connection.takesRequest,
          overLimit: () => this.#refuseBody(),
          takenBack: () => this.#breakOffTakenBack(),
        })
      : undefined
  }

  /** The client's connection has closed: the response is no longer needed. */
  clientGone(): void {
    this.abandon('the client went away')
  }

  /** Aborts the request to the backend and drops the rest of its response. */
  abandon(reason: string): void {
    this.cancelled = true
    this.#slowBody?.drop()
    this.#connection?.abort(reason)
  }

  get bodyPending(): boolean {
    return this.#body !== undefined && !this.#body.isHere
  }

  /** Whether it is waiting for the client to send more of the request body. */
  get waitsForBody(): boolean {
    return this.#body?.isAwaited ?? false
  }

  /** Increases when the client sends some of the request body or reads some of the response. */
  get clientProgress(): number {
    return (this.#body?.bytes ?? 0) + (this.#slowBody?.taken ?? 0)
  }

  /** Bytes of the response that are buffered here, besides those already written to the response. */
  get heldBytes(): number {
    return this.#slowBody?.heldBytes ?? 0
  }

  /** The backend failed during its response: only what it sent before is left to write. */
  get isCut(): boolean {
    return this.#isCut
  }

  get #responseHeaders(): readonly string[] {
    const { settlement, responseHeaders } = this.#forwarded
    return settlement ? settlement.responseHeaders : responseHeaders
  }

  start(connection: UpstreamChannel): void {
    const { request, target, upstreamHeaders, onUpgrade } = this.#forwarded
    this.#connection = connection
    const head = `${this.method} ${target} HTTP/1.1\r\n${upstreamHeaders}`
    if (this.#body) {
      this.#body.sendTo(connection, head)
      return
    }
    connection.socket.write(head + endOfHead(request, onUpgrade !== undefined), 'latin1')
    connection.requestSent()
  }

  onInformation({ status, fields }: ResponseHead): void {
    // 100 was answered before forwarding. Of the other interim responses, only 103 (RFC 8297) is useful.
    const { request, response } = this.#forwarded
    if (status === 103 && request.httpVersion !== '1.0') writeEarlyHints(response, valuesOf(fields, 'link'))
  }

  onHead(head: ResponseHead): void {
    const { request, response, settlement } = this.#forwarded
    // Answered meanwhile, as where the rest of the request could not be parsed; its end is not known here yet.
    if (response.headersSent) {
      this.cancelled = true
      throw new ResponseSyntaxError('the request has been answered already')
    }
    if (head.status > 599 && request.httpVersionMajor > 1)
      throw new ResponseSyntaxError('status code not allowed in HTTP/2')
    this.#options.telemetry.upstreamAnswered(this.#options.now() - this.#startedMs)
    this.#responding = true
    if (this.#body) endAfterResponse(request, response)
    // Node would send chunks to HTTP/1.0 if its `TE` says so (RFC 9112 section 7.4 has no such field in that version).
    if (request.httpVersion === '1.0') response.useChunkedEncodingByDefault = false
    const passed = settlement ? settlement.onHead(head) : head
    writeHead(response, head.status, responseFields(passed, request, response, this.#responseHeaders))
  }

  onBody(chunk: Buffer, last: boolean): void {
    const { response, settlement } = this.#forwarded
    this.#flushed = true
    settlement?.onBody(chunk)
    if (this.#slowBody) this.#slowBody.push(chunk)
    else if (last) endResponse(response, chunk)
    else if (!response.write(chunk))
      this.#slowBody = new ResponseBody(response, this.#options.readAhead, this.#connection)
  }

  onPause(): void {
    if (!this.#responding || this.#flushed) return
    this.#flushed = true
    flushHead(this.#forwarded.response)
  }

  onEnd(): void {
    const { request, response, settlement } = this.#forwarded
    this.#connection = undefined
    settlement?.onEnd()
    if (this.#slowBody) this.#slowBody.finish(() => response.end())
    else if (!response.writableEnded) response.end()
    // The backend answered before the end of the request body. The rest is read and dropped: the next request follows
    // it.
    if (this.#body) request.resume()
  }

  onUpgrade(head: ResponseHead, socket: Socket, rest: Buffer): void {
    const { request, settlement, onUpgrade } = this.#forwarded
    this.#connection = undefined
    if (onUpgrade && acceptsHandshake(request, head)) {
      this.#options.telemetry.upstreamAnswered(this.#options.now() - this.#startedMs)
      const { fields } = settlement ? settlement.onHead(head) : head
      onUpgrade({ ...head, fields: fields.concat(this.#responseHeaders) }, socket, rest)
      return
    }
    socket.destroy()
    this.onFailure(new UpstreamFailure('protocol', unagreed))
  }

  onFailure(failure: UpstreamFailure): void {
    const { request, response, settlement, requestId } = this.#forwarded
    this.#connection = undefined
    if (this.cancelled) return
    if (failure.onReusedConnection && !this.#retried && !this.#body && idempotentMethods.has(this.method)) {
      this.#retried = true
      this.#options.pool.sendAgain(this)
      return
    }
    if (failure.kind !== 'aborted') this.#options.telemetry.upstreamFailed(failureMetrics[failure.kind])
    if (failure.kind === 'exception') this.#options.telemetry.errorCaught('request')
    this.#options.onFailure(failure, requestId)
    // The backend may have seen it the first time.
    settlement?.onFailure(this.#retried ? 'reset' : failure.kind)
    if (response.headersSent || this.#responding) this.#cutShort(failure)
    else {
      const reply = failureReply(failure, request)
      const retryAfter = reply.status === 503 ? ['retry-after', '1'] : []
      sendError(request, response, reply, [...this.#responseHeaders, ...retryAfter])
    }
  }

  /** Sends what arrived of the response, and ends it so that the client can tell that it is incomplete. */
  #cutShort({ kind }: UpstreamFailure): void {
    const { request, response } = this.#forwarded
    // After an exception the state of the response is unknown, and to HTTP/1.0 a normal end means that it is complete.
    if (kind === 'exception' || request.httpVersion === '1.0') return breakOff(response)
    if (!this.#flushed) flushHead(response)
    this.#isCut = true
    if (this.#slowBody) this.#slowBody.finish(() => cutShort(response))
    else cutShort(response)
  }

  #breakOffTakenBack(): void {
    this.abandon('the client took the request back')
    breakOff(this.#forwarded.response)
  }

  #refuseBody(): void {
    const { request, response } = this.#forwarded
    this.abandon('the request body is over the limit')
    if (this.#responding) breakOff(response)
    else {
      this.#forwarded.onBodyOverLimit()
      sendError(request, response, errors.bodyTooLarge, this.#responseHeaders)
    }
  }
}
