import type { Socket } from 'node:net'
import { closeSoon } from './close-soon.ts'
import { Input, type InputOwner } from './input.ts'
import { Output } from './output.ts'
import type { ParsedHead } from './parser/request-head.ts'
import { Http1Request } from './request.ts'
import { Http1Response, writeFields, type ResponseConnection } from './response.ts'
import type { Http1Exchange, Http1Service, ServedConnection } from './service.ts'
import { RequestSyntaxError } from './parser/syntax-error.ts'

const connectionKey = Symbol('HTTP/1 connection')
type ServedSocket = Socket & { [connectionKey]?: Http1Connection | undefined }

/** The HTTP/1 connection on a socket, even after it became a tunnel; undefined if the socket speaks another protocol. */
export function http1On(socket: Socket): Http1Connection | undefined {
  return (socket as ServedSocket)[connectionKey]
}

/**
 * A client's HTTP/1 connection: reads requests, and serves one at a time. Bytes after a request are buffered until it is answered, so that
 * a client that sends many requests at once gets no more of the backend than one that waits (RFC 9112 section 9.3.2).
 *
 * It is the state machine of the connection and of the exchange on it; `Input` reads, `Output` writes.
 */
export class Http1Connection implements InputOwner, ResponseConnection, ServedConnection {
  readonly socket: Socket
  readonly output: Output
  readonly #service: Http1Service
  readonly #input: Input
  #request: Http1Request | undefined
  #response: Http1Response | undefined
  #state: 'open' | 'closing' | 'tunnel' | 'closed' = 'open'
  #requests = 0
  /** Requests that had arrived completely when the gateway began to stop. */
  #completeAtShutdown = 0
  /** When the last request was answered or, before the first, the connection was opened; in monotonic milliseconds. */
  #idleSinceMs: number

  constructor(socket: Socket, service: Http1Service) {
    this.socket = socket
    this.output = new Output(socket)
    this.#service = service
    this.#input = new Input(socket, this, service)
    this.#idleSinceMs = service.now()
    ;(socket as ServedSocket)[connectionKey] = this
    socket.on('error', ignore)
    socket.on('close', onClose)
    socket.on('end', onEnd)
    socket.on('drain', onDrain)
    socket.on('data', onData)
  }

  get keepAliveLine(): string {
    return this.#service.keepAliveLine
  }

  get request(): Http1Request | undefined {
    return this.#request
  }

  /** The request in flight, or the one whose rest is being dropped. */
  get exchange(): Http1Exchange | undefined {
    return this.#request && this.#response && { request: this.#request, response: this.#response }
  }

  /** How many requests have begun on this connection so far. */
  get requests(): number {
    return this.#requests
  }

  /** Bytes have been received, even if only empty lines. */
  get hasReceived(): boolean {
    return this.#input.hasReceived
  }

  /**
   * Since when no request is in flight, in monotonic milliseconds, even while a head arrives; undefined during a request, with bytes
   * buffered for this turn, and for a tunnel.
   */
  get idleSinceMs(): number | undefined {
    return this.#request || this.#input.hasBuffered || this.#state === 'tunnel'
      ? undefined
      : this.#idleSinceMs
  }

  /**
   * When the unfinished head began to arrive; for the first request, when the connection was opened. Undefined with a request in flight,
   * and once the connection is closing.
   */
  get headSinceMs(): number | undefined {
    if (this.#request || this.#state !== 'open') return undefined
    return this.#requests === 0 ? this.#idleSinceMs : this.#input.headSinceMs
  }

  /** Whether there was at least one request, all of them have been answered, and no byte of another one has arrived. */
  get isBetweenRequests(): boolean {
    if (this.#state !== 'open' || this.#request || this.#requests === 0) return false
    return !this.#input.hasBuffered && !this.#input.isInHead
  }

  /** Whether requests are still read and answered. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  onData(bytes: Buffer): void {
    this.#input.receive(bytes)
  }

  /** Reads the bytes that have been buffered until the end of this turn. */
  readBuffered(): void {
    this.#input.readBuffered()
  }

  /** Runs a step. A `RequestSyntaxError` is answered; any other exception is a bug, and ends this connection only. */
  guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      if (error instanceof RequestSyntaxError) return this.#fail(error)
      const { exchange } = this
      this.#input.discard()
      exchange?.response.closeAfterResponse()
      this.#service.onException(error, exchange)
      if (!exchange) this.socket.destroy()
    }
  }

  leaveToHttp2(bytes: Buffer): void {
    const { socket } = this
    this.#detachSocket()
    ;(socket as ServedSocket)[connectionKey] = undefined
    this.#service.onPreface?.(socket, bytes)
  }

  onHead(head: ParsedHead): void {
    const service = this.#service
    const request = new Http1Request(this.socket, head, this.#input)
    const response = new Http1Response(request, this, head.persistent && head.framing !== 'unknown')
    this.#request = request
    this.#response = response
    this.#requests++
    if (service.isStopping && --this.#completeAtShutdown <= 0) response.closeAfterResponse()
    this.serve(request, response)
  }

  /** Passes a request to the handler; a method of its own so that tests can observe it. */
  serve(request: Http1Request, response: Http1Response): void {
    this.#service.onRequest(this, request, response)
  }

  onBody(piece: Buffer): void {
    this.#request?.onBody(piece)
  }

  onBodyEnd(trailers: readonly string[]): void {
    this.#request?.onBodyEnd(trailers)
    if (this.#response?.destroyed) this.#endExchange()
  }

  finishResponse(last: Buffer | undefined, suffix: string): void {
    const response = this.#response
    this.output.finish(last, suffix, () => this.#onResponseSent(response))
  }

  /** The operating system has taken all of a response. */
  #onResponseSent(response: Http1Response | undefined): void {
    if (response !== this.#response || !response || response.destroyed) return
    // The client disconnected before the response could be written: `onClose` marks it as closed.
    if (this.#state === 'closed' || this.socket.destroyed) return
    response.markClosed()
    const request = this.#request
    if (this.#state !== 'open') return
    if (!response.shouldKeepAlive)
      this.#close(response.lingers || !request?.complete || this.#input.hasPipelined)
    else if (request?.complete) this.#endExchange()
    else request?.dump()
  }

  /** The request has been read and answered. Reads the buffered bytes up to the end of the next one. */
  #endExchange(): void {
    this.#request = this.#response = undefined
    this.#idleSinceMs = this.#service.now()
    this.#input.readNext()
  }

  /** Handles input that cannot be parsed, or that is late: nothing more is read. */
  #fail(fault: RequestSyntaxError | 'late'): void {
    if (this.#state !== 'open' || this.#input.isDiscarded) return
    this.#input.discard()
    this.#service.onFault(this, fault, this.exchange)
  }

  /** Call when the head of a request does not arrive in time. */
  timeOut(): void {
    // Browsers open spare connections: one that was not used in time is closed without a response.
    if (this.#input.hasReceived) this.#fail('late')
    else this.socket.destroy()
  }

  /** Answers malformed input without a request object, and ends the connection. */
  rejectInput(
    { status, reason, body }: { readonly status: number; readonly reason: string; readonly body: Buffer },
    fields: readonly string[],
  ): void {
    const own = [
      'content-type',
      'application/json',
      'content-length',
      String(body.length),
      'connection',
      'close',
    ]
    this.output.write(
      `HTTP/1.1 ${status} ${reason}\r\n${writeFields([...own, ...fields])}\r\n${body.toString('latin1')}`,
    )
    this.closeSoon()
  }

  closeSoon(): void {
    if (this.#state === 'open') this.#close(true)
  }

  #close(lingers: boolean): void {
    this.#state = 'closing'
    this.#input.drop()
    this.output.flush()
    // The operating system resets a connection that is closed with unread bytes, and the response may be lost.
    if (lingers) closeSoon(this.socket)
    else this.socket.destroySoon()
  }

  /** Handles the half-close of a client, which counts as disconnected from now on. */
  onEnd(): void {
    this.#input.readBuffered()
    if (this.#state !== 'open' || this.#input.isDiscarded) return
    const { exchange } = this
    if (!exchange) {
      if (this.#input.isInHead)
        this.#fail(new RequestSyntaxError('connection closed before the end of the head'))
      else this.#close(false)
      return
    }
    const { request, response } = exchange
    if (!request.complete)
      return this.#fail(new RequestSyntaxError('connection closed before the end of the body'))
    if (!response.writableEnded) {
      // To an HTTP/1.0 client, a response without a length would look complete at the end of the connection. And what a client does not
      // read of a response that is cut off anyway would stay in memory.
      if (response.isUndelimited || response.writableNeedDrain) return response.abort()
      this.closeSoon()
      return response.markClosed()
    }
    this.closeSoon()
  }

  onDrain(): void {
    const response = this.#response
    if (response && !response.writableEnded) this.guard(() => response.onDrain?.())
  }

  onClose(): void {
    const { exchange } = this
    this.#input.drop()
    if (this.#state === 'tunnel') return
    this.#state = 'closed'
    exchange?.response.markClosed()
    exchange?.request.onConnectionClose()
    this.#request = this.#response = undefined
  }

  /** Call when the gateway begins to stop. Complete requests are still served. */
  stop(): void {
    const response = this.#response
    this.#completeAtShutdown = this.#input.countWholeRequests()
    if (response && !response.headersSent && this.#completeAtShutdown === 0) response.closeAfterResponse()
  }

  /** Detaches the socket, paused and without listeners. Returns the bytes received after the request in flight. */
  becomeTunnel(): Buffer {
    const rest = this.#input.takePipelined()
    this.output.flush()
    this.#detachSocket()
    this.#state = 'tunnel'
    return rest
  }

  #detachSocket(): void {
    const { socket } = this
    this.#request = this.#response = undefined
    this.#input.drop()
    this.#state = 'closed'
    socket.pause()
    socket.off('close', onClose)
    socket.off('end', onEnd)
    socket.off('drain', onDrain)
    socket.off('data', onData)
  }
}

function onData(this: ServedSocket, bytes: Buffer): void {
  this[connectionKey]?.onData(bytes)
}

function onEnd(this: ServedSocket): void {
  this[connectionKey]?.onEnd()
}

function onDrain(this: ServedSocket): void {
  this[connectionKey]?.onDrain()
}

function onClose(this: ServedSocket): void {
  this[connectionKey]?.onClose()
}

/** Ignores an error of the socket, because `close` follows it. */
function ignore(): void {}
