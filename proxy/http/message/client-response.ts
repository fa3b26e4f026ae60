import type { ClientRequest } from './client-request.ts'

/** The response to a request from a client, over either HTTP version. */
export abstract class ClientResponse {
  readonly req: ClientRequest
  /** Called once: when the last byte has been handed to the operating system, the response was aborted, or the client has gone. */
  onClose: (() => void) | undefined
  /** Called where `write` has returned false and there is room again. */
  onDrain: (() => void) | undefined
  statusCode = 200
  /** The head of the response has been given. */
  headersSent = false
  /** The end of the response has been given. */
  writableEnded = false
  /** It is over: nothing that is given any more goes out. */
  destroyed = false

  constructor(request: ClientRequest) {
    this.req = request
  }

  /** HTTP/1: the connection is kept after the response. It is true over HTTP/2. */
  abstract readonly shouldKeepAlive: boolean
  /** Bytes of the response that wait for the client to read. */
  abstract readonly writableLength: number
  /** `write` has returned false, and `drain` is to come. */
  abstract readonly writableNeedDrain: boolean

  /**
   * Gives the head, which goes out with the first piece of the body, or with `flushHead`.
   *
   * @param fields name, value, name, value… with names in lower case; a name may repeat. What HTTP/2 has no use for is not among them
   *   for an HTTP/2 response
   */
  abstract writeHead(status: number, fields: readonly string[]): void
  /** Sends the head before there is anything of the body. */
  abstract flushHead(): void
  /** Gives a piece of the body. Returns whether there is room for more. */
  abstract write(piece: Buffer): boolean
  /** Gives the last piece of the body, if there is one, and the end. Does nothing after the end. */
  abstract end(last?: Buffer): void
  /** The trailers to end with, where the client takes them: name, value, name, value… To be given before the end. */
  abstract addTrailers(fields: readonly string[]): void
  /** 100 Continue (RFC 9110 section 10.1.1), unless the response has begun. */
  abstract writeContinue(): void
  /**
   * An interim response of the backend (RFC 9110 section 15.2), unless the response has begun, or the client does not read its
   * responses, or understands none (HTTP/1.0).
   *
   * @param fields name, value, name, value… with names in lower case
   */
  abstract writeInterimResponse(status: number, fields: readonly string[]): void

  /**
   * To be called before `writeHead` if the response may be complete before the request's body: over HTTP/1 the connection closes
   * after it, unless the rest of the body is short enough to be read and dropped. Over HTTP/2 it does nothing: once the response is
   * complete, the client is asked not to send the rest (RFC 9113 section 8.1).
   */
  abstract closeIfBodyUnread(): void
  /**
   * To be called before `writeHead`: over HTTP/1 the connection closes after the response in any case, because what the client sends
   * behind this request cannot be read as another one, or must not be. Does nothing over HTTP/2.
   */
  abstract closeAfterResponse(): void
  /** Ends the response after the bytes written so far, such that the client can tell that it is truncated. */
  abstract truncate(): void
  /** Aborts the response now, such that the client cannot take it for complete: pending bytes are lost. */
  abstract abort(): void
  /** Closes the connection, with all other responses on it. */
  abstract destroyConnection(): void

  /** It is over. */
  protected close(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.onClose?.()
  }
}
