import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { HeaderList } from '../message/header-list.ts'
import type { UpstreamFailure } from './failure.ts'
import type { ResponseHead } from './response/response-head.ts'

/**
 * A request to the backend and its response, as a connection sees it. `Forwarding` is one; `MovingExchange` is another around it, if there
 * are several servers. The pool asks for the facts, and the connection that it chooses calls the methods.
 */
export type UpstreamExchange = {
  readonly method: string
  /** The client that made the request: connections are shared fairly between clients. */
  readonly client: string
  /** Whether the request was given up, so that no connection needs to be opened for it. Nothing is reported to its client any more. */
  readonly isCancelled: boolean
  /** The size of the request's head, without what the connection adds: target, and names and values of headers. */
  readonly headBytes: number
  /** Whether some of the request's body has not arrived from the client yet. */
  readonly isBodyPending: boolean
  /** Whether the request asks for another protocol, such as WebSocket, which needs HTTP/1.1. */
  readonly upgrades: boolean
  /**
   * Whether the request may be sent to another server even if one has seen it: it is idempotent, and no part of a response has been passed
   * on.
   */
  readonly isRetryable: boolean
  /** Called when the exchange gets its connection: calls `writeHead` and, for a request with a body, `write` and `endBody`. */
  start(connection: UpstreamChannel): void
  onInterimResponse(head: ResponseHead): void
  onHead(head: ResponseHead): void
  /** @param last whether the body ends with this piece; false if that is not known yet */
  onBody(chunk: Buffer, last: boolean): void
  /** Called when all data of one read has been passed on: bytes buffered for a single write can be flushed. */
  onReadEnd(): void
  /** Called after the body and before `onEnd`, with name, value, name, value… Names are tokens, in lower case from HTTP/2. */
  onTrailers(fields: readonly string[]): void
  onEnd(): void
  onUpgrade(head: ResponseHead, socket: Socket, rest: Buffer): void
  /** Called at most once for each `send` or `retry`, as the last method; never after `onEnd`, and after `onUpgrade` only if that throws. */
  onFailure(failure: UpstreamFailure): void
}

/** The head of a request to the backend, for HTTP/1 and HTTP/2. */
export type UpstreamRequest = {
  readonly method: string
  readonly target: string
  /** The headers, which have been checked: `host` first, without those that frame the body. */
  readonly fields: HeaderList
  readonly hasBody: boolean
  /** The length of the body to declare, in bytes. Undefined if it is unknown, or if a request without a body declares no length. */
  readonly contentLength: number | undefined
  /** The client accepts trailers. */
  readonly acceptsTrailers: boolean
  /** The protocol to switch to, over HTTP/1.1 only. */
  readonly upgrade: string | undefined
  /**
   * Whether the request may authenticate its connection (NTLM, Negotiate). The connection then serves no other request, which may be
   * another client's.
   */
  readonly logsIn: boolean
}

/** A connection to the backend, or a stream on one, as the exchange on it sees it. */
export type UpstreamChannel = {
  /**
   * Writes the head. If the request has no body, this starts the timeout for the backend's answer. Over HTTP/1 the head is sent at the end
   * of this turn, together with the part of the body that has arrived by then.
   *
   * @param beforeSent called once, before the first bytes of a request with a body are sent. Not called over HTTP/2, where the backend
   *   itself reports whether it has begun with a request
   * @returns the stream whose `drain` and `error` concern the body; only `write` writes to it
   */
  writeHead(request: UpstreamRequest, beforeSent?: () => void): Writable
  /** Sends a piece of the body. */
  write(piece: Buffer): void
  /**
   * Ends the body, without trailers, and starts the timeout for the backend's answer. Over HTTP/2 they would be a second HEADERS frame,
   * after which grpc-go closes the connection with all its requests.
   */
  endBody(): void
  /** Whether more of the request can be sent. */
  readonly isWritable: boolean
  /** Call when the backend has stopped reading the request's body. Starts the timeout for the backend's answer. */
  bodyStalled(): void
  /** Call when the backend reads the request's body again. */
  bodyDrained(): void
  /** Stops reading the response until `resume`, because the client is slower than the backend. */
  pause(): void
  resume(): void
  /** Bytes of the response that may still be received after `pause`, and are kept until `resume`; memory is reserved for them. */
  readonly maxWaitingBytes: number
  /** Bytes of the response that have been received and are kept. */
  readonly waitingBytes: number
  /** Fails the exchange in progress with an exception that it threw. */
  failFor(error: unknown): void
  /** Aborts the exchange in progress and closes the connection, because an incomplete message is on it. */
  abort(reason: string): void
}
