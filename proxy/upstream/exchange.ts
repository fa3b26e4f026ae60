import type { Socket } from 'node:net'
import type { UpstreamFailure } from './failure.ts'
import type { ResponseHead } from './response-head.ts'

/** A request to the backend and its response, as a connection sees it. */
export type UpstreamExchange = {
  readonly method: string
  /** Whose request it is: connections are shared fairly between clients. */
  readonly client: string
  /** The client has disconnected: no connection is to be opened for it. */
  readonly cancelled: boolean
  /** The request has a body of which a part has not arrived from the client. */
  readonly bodyPending: boolean
  /** Called when the exchange gets its connection: write the request, then call `requestSent`. */
  start(connection: UpstreamChannel): void
  onInformation(head: ResponseHead): void
  onHead(head: ResponseHead): void
  onBody(chunk: Buffer, last: boolean): void
  /** All data of one read has been handed over: what was buffered for a single write can be flushed. */
  onPause(): void
  onEnd(): void
  onUpgrade(head: ResponseHead, socket: Socket, rest: Buffer): void
  /** Nothing more comes. At most once, and never after `onEnd` or `onUpgrade`. */
  onFailure(failure: UpstreamFailure): void
}

/** A connection to the backend, as the exchange on it sees it. */
export type UpstreamChannel = {
  readonly socket: Socket
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
