import type { Socket } from 'node:net'
import { ClientRequest } from '../message/client-request.ts'
import type { ParsedHead } from './parser/request-head.ts'

/** Notified when the body of a request is read, so that its connection can read on. */
export type BodyReading = {
  /** A listener has received some of the body. */
  onBodyConsumed(): void
}

/** An HTTP/1 request, whose body its connection delivers as it arrives. */
export class Http1Request extends ClientRequest {
  readonly httpVersion: string
  readonly httpVersionMajor = 1
  readonly hasContent: boolean
  readonly #reading: BodyReading

  constructor(socket: Socket, head: ParsedHead, reading: BodyReading) {
    super(socket, head.method, head.url, head.fields)
    this.httpVersion = head.version
    this.hasContent = head.framing !== 'none'
    this.complete = head.framing === 'none'
    this.#reading = reading
  }

  /** The next piece of the body has arrived. */
  onBody(piece: Buffer): void {
    this.receive(piece)
  }

  /** The last byte of the body has arrived. @param trailers name, value, name, value… with names in lower case */
  onBodyEnd(trailers: readonly string[]): void {
    this.rawTrailers = trailers
    this.receiveEnd()
  }

  /** The connection has closed. */
  onConnectionClose(): void {
    this.drop()
  }

  protected override onConsumed(): void {
    if (!this.complete) this.#reading.onBodyConsumed()
  }
}
