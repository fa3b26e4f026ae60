import type { Socket } from 'node:net'
import { flushAtEndOfTurn, type Flushable } from '../message/end-of-turn.ts'
import type { UpstreamRequest } from './exchange.ts'
import { writeChunk, writeLastChunk, writeRequestHead } from './request-text.ts'

/** Writes the requests of one HTTP/1.1 connection to its socket, one after another: each head, and each body with its framing. */
export class RequestWriter implements Flushable {
  readonly #socket: Socket
  /** The head of a request without a body, to be flushed at the end of this turn. */
  #head = ''
  #isUnsent = false
  /** The body of the request is sent in chunks, as its length is unknown. */
  #isChunked = false
  #isClosed = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /**
   * Whether no byte of the request has been given to the operating system. Bytes that the backend sends before then cannot be its response.
   */
  get isUnsent(): boolean {
    return this.#isUnsent
  }

  /** Begins another request. */
  begin(): void {
    this.#isUnsent = true
  }

  /** @param beforeSent called before the first bytes of a request with a body are sent */
  writeHead(request: UpstreamRequest, beforeSent?: () => void): void {
    const head = writeRequestHead(request)
    if (request.hasBody) {
      this.#isChunked = request.contentLength === undefined
      // Corked until the first piece of the body has arrived, usually at once, so that both are sent in one packet.
      this.#cork(beforeSent)
      this.#socket.write(head, 'latin1')
    } else {
      this.#head = head
      flushAtEndOfTurn(this)
    }
  }

  write(piece: Buffer): void {
    if (this.#isChunked) writeChunk(this.#socket, piece)
    else this.#socket.write(piece)
  }

  endBody(): void {
    if (this.#isChunked) writeLastChunk(this.#socket)
  }

  flush(): void {
    if (this.#isClosed) return
    const head = this.#head
    this.#head = ''
    this.#isUnsent = false
    this.#socket.write(head, 'latin1')
  }

  #cork(beforeSent?: () => void): void {
    this.#socket.cork()
    setImmediate(() => {
      if (this.#isClosed) return
      this.#isUnsent = false
      beforeSent?.()
      this.#socket.uncork()
    })
  }

  /** The connection is closed, or another protocol is spoken on it: nothing more is written. */
  close(): void {
    this.#isClosed = true
  }
}
