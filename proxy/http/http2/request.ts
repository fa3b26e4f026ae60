import type { Socket } from 'node:net'
import { ClientRequest } from '../message/client-request.ts'
import type { RequestFields } from './request-fields.ts'

/** The stream of a request. */
export type RequestStream = {
  readonly socket: Socket
  /** Bytes of the content were taken. */
  onTaken(bytes: number): void
}

/** An HTTP/2 request: the half of its stream that comes from the client. */
export class Http2Request extends ClientRequest {
  readonly httpVersion = '2.0'
  readonly httpVersionMajor = 2
  readonly hasContent: boolean
  readonly #stream: RequestStream

  /** @param hasContent the stream did not end with the headers */
  constructor(stream: RequestStream, { method, path, headers }: RequestFields, hasContent: boolean) {
    super(stream.socket, method, path, headers)
    this.#stream = stream
    this.hasContent = hasContent
    this.complete = !hasContent
  }

  /** The next piece of the content has arrived. */
  takePiece(piece: Buffer): void {
    this.receive(piece)
  }

  /** The content has arrived to its end. */
  takeEnd(): void {
    this.receiveEnd()
  }

  /** The rest of the content will not come. */
  dropRest(): void {
    this.drop()
  }

  protected override onTaken(bytes: number): void {
    this.#stream.onTaken(bytes)
  }
}
