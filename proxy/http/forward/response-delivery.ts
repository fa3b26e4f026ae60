import type { ClientResponse } from '../message/client-response.ts'
import type { UpstreamChannel } from '../upstream/exchange.ts'
import { ResponseBody, type ReadAhead } from './body/response-body.ts'

/** The response of the backend on its way to the client, at the pace of the client. */
export class ResponseDelivery {
  readonly #response: ClientResponse
  readonly #readAhead: ReadAhead
  #hasBegun = false
  #flushed = false
  /** The pending body; undefined until the client reads more slowly than the backend sends. */
  #slowBody: ResponseBody | undefined
  #isTruncated = false

  constructor(response: ClientResponse, readAhead: ReadAhead) {
    this.#response = response
    this.#readAhead = readAhead
  }

  /** The backend has answered: its head is passed on next. */
  begin(): void {
    this.#hasBegun = true
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** How often the client has read some of its pending response. */
  get readsByClient(): number {
    return this.#slowBody?.readsByClient ?? 0
  }

  /** Buffered bytes that have not been written to the response yet. */
  get bufferedBytes(): number {
    return this.#slowBody?.bufferedBytes ?? 0
  }

  /** Whether the backend failed during its response; what it sent before is still being written to the client. */
  get isTruncated(): boolean {
    return this.#isTruncated
  }

  /** @param source paused while too many bytes are buffered for the client */
  write(chunk: Buffer, last: boolean, source: UpstreamChannel | undefined): void {
    const response = this.#response
    this.#flushed = true
    if (this.#slowBody) this.#slowBody.push(chunk)
    else if (last) response.end(chunk)
    else if (response.writableNeedDrain) this.#hold(chunk, source)
    else response.write(chunk)
  }

  /** Buffers the rest of the body, because the client reads more slowly than the backend sends. */
  #hold(chunk: Buffer, source: UpstreamChannel | undefined): void {
    this.#slowBody = new ResponseBody(this.#response, this.#readAhead, source)
    this.#slowBody.push(chunk)
  }

  /** Sends the head, if no body has been written after it. */
  flushHead(): void {
    if (!this.#hasBegun || this.#flushed) return
    this.#flushed = true
    this.#response.flushHead()
  }

  /** The response is complete. */
  end(): void {
    const response = this.#response
    if (this.#slowBody) this.#slowBody.finish(() => response.end())
    else if (!response.writableEnded) response.end()
  }

  /** Sends the received part of the response, and ends it so that the client can tell that it is truncated. */
  truncate(): void {
    const response = this.#response
    this.flushHead()
    this.#isTruncated = true
    if (this.#slowBody) this.#slowBody.finish(() => response.truncate())
    else response.truncate()
  }

  /** Discards the bytes that are buffered for the client. */
  drop(): void {
    this.#slowBody?.drop()
  }
}
