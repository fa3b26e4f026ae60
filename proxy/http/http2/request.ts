import type { Socket } from 'node:net'
import { ClientRequest } from '../message/client-request.ts'
import type { RequestFields } from './request-fields.ts'

/** The stream of a request. */
export type RequestStream = {
  readonly socket: Socket
  /** Called when a listener has received this many bytes of the content. */
  onConsumed(bytes: number): void
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
  onBody(piece: Buffer): void {
    this.receive(piece)
  }

  /** The last byte of the content has arrived. */
  onBodyEnd(): void {
    this.receiveEnd()
  }

  /** The rest of the content is not wanted, or will not come. */
  dropRest(): void {
    this.drop()
  }

  protected override onConsumed(bytes: number): void {
    this.#stream.onConsumed(bytes)
  }
}
