import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { UpstreamFailure } from './failure.ts'
import type { ResponseHead } from './response/response-head.ts'

/** A request to the backend and its response, as a connection sees it. */
export type UpstreamExchange = {
  readonly method: string
  /** Whose request it is: connections are shared fairly between clients. */
  readonly client: string
  /** The client has disconnected: do not open a connection for it. */
  readonly cancelled: boolean
  /** The request has a body of which a part has not arrived from the client. */
  readonly bodyPending: boolean
  /** It asks for another protocol, such as WebSocket, which needs HTTP/1.1. */
  readonly upgrades: boolean
  /** It may be sent to another server, although one may have seen it: nothing of a response has been passed on. */
  readonly isRepeatable: boolean
  /** Called when the exchange gets its connection: write the request, then call `requestSent`. */
  start(connection: UpstreamChannel): void
  onInformation(head: ResponseHead): void
  onHead(head: ResponseHead): void
  onBody(chunk: Buffer, last: boolean): void
  /** All data of one read has been handed over: the bytes buffered for a single write can be flushed. */
  onPause(): void
  /** Behind the body, before `onEnd`: name, value, name, value… Names are tokens, in lower case from HTTP/2. */
  onTrailers(fields: readonly string[]): void
  onEnd(): void
  onUpgrade(head: ResponseHead, socket: Socket, rest: Buffer): void
  /** Nothing more comes. At most once, and never after `onEnd` or `onUpgrade`. */
  onFailure(failure: UpstreamFailure): void
}

/** A connection to the backend, or a stream on one, as the exchange on it sees it. */
export type UpstreamChannel = Http1Channel | Http2Channel

export type Http1Channel = Channel & {
  /** Where a request with a body is written. */
  readonly socket: Socket
  /** The request logs its connection in: it serves no other after the response, which may be another client's. */
  closeAfterResponse(): void
  /** Sends a request without a body at the end of this turn. */
  sendHead(head: string): void
  /**
   * Corks the socket until the end of this turn.
   *
   * @param onWritten called before it is sent. Not called where the connection fails before that: the backend has seen nothing then
   */
  cork(onWritten: () => void): void
}

export type Http2Channel = Channel & {
  readonly socket: undefined
  /** Opens the stream with the request's head. Returns where the body is written. */
  open(head: StreamHead): Writable
  /** Ends the request's body. @param trailers name, value, name, value… */
  endRequest(trailers: readonly string[]): void
}

/** A request's head, for HTTP/2. */
export type StreamHead = {
  readonly method: string
  readonly target: string
  /** As HTTP/1.1 has them, `host` first, each ending in CRLF. */
  readonly lines: string
  readonly contentLength: string | undefined
  readonly hasBody: boolean
  /** The client takes trailers. */
  readonly acceptsTrailers: boolean
}

type Channel = {
  /** More of the request can be sent. */
  readonly takesRequest: boolean
  /** The request's last byte has been handed to the socket: from now on the backend's answer is waited for. */
  requestSent(): void
  /** The backend has stopped taking the request's body, or goes on taking it. */
  requestStalled(stalled: boolean): void
  /** Stops reading the response until `resume`: the client is slower than the backend. */
  pause(): void
  resume(): void
  /** Fails the exchange in progress with an exception that it threw. */
  failFor(error: unknown): void
  /** Aborts the exchange in progress and closes the connection, as an incomplete message is on it. */
  abort(reason: string): void
}

/** A destination for requests: the connections to a server, or to one of several. */
export type UpstreamSender = {
  /** Fails through `exchange.onFailure`. */
  send(exchange: UpstreamExchange): void
  /** Sends a request again after its reused connection turned out to be closed. To be called within its `onFailure`. */
  sendAgain(exchange: UpstreamExchange): void
}

/** The connections to one server. */
export type ServerPool = UpstreamSender & {
  /** Connections. */
  readonly size: number
  /** Connections that have a long response. */
  readonly streams: number
  /** Requests that have a connection, are getting one, or wait. */
  readonly busy: number
  readonly queued: number
  readonly queuedUploads: number
  /** Closes all connections now. Requests on them and in the queues fail. */
  destroy(): void
}
