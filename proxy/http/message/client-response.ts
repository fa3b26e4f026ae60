import type { ClientRequest } from './client-request.ts'

/** The response to a request from a client, over either HTTP version. */
export abstract class ClientResponse {
  readonly req: ClientRequest
  /** Called once: when the last byte has been handed to the operating system, the response was aborted, or the client has gone. */
  onClose: (() => void) | undefined
  /** Called when there is room again after `write` has returned false. */
  onDrain: (() => void) | undefined
  statusCode = 200
  /** `writeHead` was called. */
  headersSent = false
  /** `end` was called. */
  writableEnded = false
  /** Whether the response was sent or aborted. Later writes are dropped. */
  destroyed = false
  /** Bytes of the body that were written to frames. Only counted over HTTP/2, where the client's windows determine how many. */
  framedBytes = 0

  constructor(request: ClientRequest) {
    this.req = request
  }

  /** Whether an HTTP/1 connection is kept open after the response. Always true over HTTP/2. */
  abstract readonly shouldKeepAlive: boolean
  /** Pending bytes of the response, which the client has not read yet. */
  abstract readonly writableLength: number
  /** `write` has returned false, and `onDrain` has not been called since. */
  abstract readonly writableNeedDrain: boolean

  /**
   * Sets the head, which is sent with the first piece of the body, or by `flushHead`.
   *
   * @param fields name, value, name, value… with names in lower case; a name may repeat. Over HTTP/2, without connection-specific fields,
   *   which HTTP/2 forbids
   */
  abstract writeHead(status: number, fields: readonly string[]): void
  /** Sends the head without waiting for the body. */
  abstract flushHead(): void
  /** Sends a piece of the body. Returns whether there is room for more. */
  abstract write(piece: Buffer): boolean
  /** Sends the last piece of the body, if there is one, and ends the response. Does nothing after the end. */
  abstract end(last?: Buffer): void
  /** Sets the trailers, which are sent if the client accepts them: name, value, name, value… Call before `end`. */
  abstract addTrailers(fields: readonly string[]): void
  /** Sends 100 Continue (RFC 9110 section 10.1.1), unless the response has begun. */
  abstract writeContinue(): void
  /**
   * Passes on an interim response of the backend (RFC 9110 section 15.2), unless the response has begun, the client does not read its
   * responses, or it speaks HTTP/1.0, which has no interim responses.
   *
   * @param fields name, value, name, value… with names in lower case
   */
  abstract writeInterimResponse(status: number, fields: readonly string[]): void

  /**
   * Call before `writeHead` if the response may be complete before the request body. Over HTTP/1, the connection then closes after the
   * response, unless the rest of the body is short enough to be read and dropped. Does nothing over HTTP/2, where the client is asked not
   * to send the rest once the response is complete (RFC 9113 section 8.1).
   */
  abstract closeIfBodyUnread(): void
  /**
   * Call before `writeHead` if the bytes that the client sends after this request cannot, or must not, be read as another request. Over
   * HTTP/1, the connection always closes after the response. Does nothing over HTTP/2.
   */
  abstract closeAfterResponse(): void
  /** Ends the response after the bytes written so far, so that the client can tell that it is truncated. */
  abstract truncate(): void
  /** Aborts the response at once, so that the client cannot take it for complete. Pending bytes are lost. */
  abstract abort(): void
  /** Closes the connection, with all other responses on it. */
  abstract destroyConnection(): void

  /** Call when no more of the response will be sent. */
  protected close(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.onClose?.()
  }
}
