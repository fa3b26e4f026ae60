import type { Socket } from 'node:net'
import { ClientRequest } from '../message/client-request.ts'
import type { RequestHead } from './parser/request-head.ts'

/** Callbacks about the reading of a request's body. */
export type BodyReading = {
  /** Some of it has been given out, or it flows again. */
  onBodyTaken(): void
}

/** An HTTP/1 request, whose body its connection delivers as it arrives. */
export class Http1Request extends ClientRequest {
  readonly httpVersion: string
  readonly httpVersionMajor = 1
  readonly hasContent: boolean
  readonly #reading: BodyReading

  constructor(socket: Socket, head: RequestHead, reading: BodyReading) {
    super(socket, head.method, head.url, head.fields)
    this.httpVersion = head.version
    this.hasContent = head.framing !== 'none'
    this.complete = head.framing === 'none'
    this.#reading = reading
  }

  takePiece(piece: Buffer): void {
    this.receive(piece)
  }

  takeEnd(trailers: readonly string[]): void {
    this.rawTrailers = trailers
    this.receiveEnd()
  }

  /** The connection has closed. */
  takeClose(): void {
    this.drop()
  }

  protected override onTaken(): void {
    if (!this.complete) this.#reading.onBodyTaken()
  }
}
