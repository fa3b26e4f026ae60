import type { Socket } from 'node:net'
import { MAX_BUFFERED_BYTES, readAtEndOfTurn, type Reader } from '../message/end-of-turn.ts'
import { closeSoon } from './close-soon.ts'
import { Output } from './output.ts'
import { countWholeRequests, PipelinedBytes } from './pipelined-bytes.ts'
import { PrefaceWatch } from './preface.ts'
import type { RequestHead } from './parser/request-head.ts'
import { RequestParser, type RequestSink } from './parser/request-parser.ts'
import { Http1Request, type BodyReading } from './request.ts'
import { Http1Response, writeFields, type ResponseConnection } from './response.ts'
import type { Exchange, Http1Service, ServedConnection } from './service.ts'
import { RequestSyntaxError } from './parser/syntax-error.ts'

const connectionKey = Symbol('HTTP/1 connection')
type ServedSocket = Socket & { [connectionKey]?: Http1Connection | undefined }

/** Bytes behind a request that is being served, and bytes of its body that nobody takes: then reading pauses. */
const MAX_BUFFERED_INPUT = 64 * 1024

/** The HTTP/1 connection on a socket, even after it became a tunnel; undefined if the socket speaks another protocol. */
export function http1On(socket: Socket): Http1Connection | undefined {
  return (socket as ServedSocket)[connectionKey]
}

/**
 * A client's HTTP/1 connection: reads requests, and serves one at a time. Bytes after a request are buffered, and read when that
 * is answered, so that a client that sends many at once gets no more of the backend than one that waits (RFC 9112 section 9.3.2).
 */
export class Http1Connection
  implements RequestSink, BodyReading, ResponseConnection, ServedConnection, Reader
{
  readonly socket: Socket
  readonly output: Output
  readonly #service: Http1Service
  readonly #parser: RequestParser
  #preface: PrefaceWatch | undefined
  /** Bytes received in this turn while no request is in flight; read at the end of the turn. */
  #kept: Buffer | undefined
  #request: Http1Request | undefined
  #response: Http1Response | undefined
  #pipelined: PipelinedBytes | undefined
  #state: 'open' | 'closing' | 'tunnel' | 'closed' = 'open'
  #isReading = true
  /** The input could not be parsed: further bytes are dropped. */
  #discardsInput = false
  /** Bytes have come that were read as HTTP/1, empty lines too. */
  #hasReceived = false
  #requests = 0
  /** Requests that had arrived whole when the gateway began to stop. */
  #completeAtShutdown = 0
  /** Since when there is no request in flight. */
  #idleSinceMs: number
  /** When a head began that has not arrived whole. */
  #headSinceMs: number | undefined

  constructor(socket: Socket, service: Http1Service) {
    this.socket = socket
    this.output = new Output(socket)
    this.#service = service
    this.#parser = new RequestParser(this, service.headLimits)
    this.#idleSinceMs = service.now()
    if (service.onPreface) this.#preface = new PrefaceWatch()
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

  /** The request in flight, or one of which the rest is being dropped. */
  get exchange(): Exchange | undefined {
    return this.#request && this.#response && { request: this.#request, response: this.#response }
  }

  /** How many requests it has brought. */
  get requests(): number {
    return this.#requests
  }

  /** Bytes have come, be they empty lines. */
  get hasReceived(): boolean {
    return this.#hasReceived
  }

  /** Since when no request is in flight, also while the head of one arrives; undefined with one in flight, and for a tunnel. */
  get idleSinceMs(): number | undefined {
    return this.#request || this.#kept || this.#state === 'tunnel' ? undefined : this.#idleSinceMs
  }

  /** Since when the head of a request has been arriving, the first one since the connection was opened. */
  get headSinceMs(): number | undefined {
    if (this.#request || this.#state !== 'open') return undefined
    return this.#requests === 0 ? this.#idleSinceMs : this.#headSinceMs
  }

  /** All requests have been answered, and nothing of another has come. */
  get isBetweenRequests(): boolean {
    return (
      this.#state === 'open' && !this.#request && !this.#kept && this.#requests > 0 && !this.#parser.isInHead
    )
  }

  /** Whether more can be written now. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  onData(bytes: Buffer): void {
    if (this.#kept) {
      this.#kept = Buffer.concat([this.#kept, bytes])
      this.readKept()
      // The end of a connection that is left to another protocol is told to that only behind its first bytes.
    } else if (this.#request || this.#preface || bytes.length > MAX_BUFFERED_BYTES) this.#receive(bytes)
    else {
      this.#kept = bytes
      readAtEndOfTurn(this)
    }
  }

  readKept(): void {
    const bytes = this.#kept
    this.#kept = undefined
    if (bytes && !this.socket.destroyed) this.#receive(bytes)
  }

  #receive(bytes: Buffer): void {
    if (this.#state !== 'open' || this.#discardsInput) return
    this.#hasReceived = true
    this.#guard(() => this.#take(bytes))
  }

  /** Runs a step. What it throws, if it is not a fault of the client, is a bug, and ends this connection only. */
  #guard(step: () => unknown): void {
    try {
      step()
    } catch (error) {
      if (error instanceof RequestSyntaxError) return this.#fail(error)
      const { exchange } = this
      this.#discardsInput = true
      exchange?.response.closeAfterResponse()
      this.#service.onException(error, exchange)
      if (!exchange) this.socket.destroy()
    }
  }

  #take(bytes: Buffer): void {
    if (!this.#preface) return this.#read(bytes)
    const seen = this.#preface.take(bytes)
    if (seen === undefined) return
    const { isPreface } = this.#preface
    this.#preface = undefined
    if (isPreface) this.#leaveTo(this.#service.onPreface, seen)
    else this.#read(seen)
  }

  #leaveTo(next: Http1Service['onPreface'], bytes: Buffer): void {
    const { socket } = this
    this.#leave()
    ;(socket as ServedSocket)[connectionKey] = undefined
    next?.(socket, bytes)
  }

  #read(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length && this.#state === 'open') {
      if (this.#request?.complete) return this.#keep(at === 0 ? bytes : bytes.subarray(at))
      at = this.#parser.execute(bytes, at)
    }
    if (this.#request) this.#updateReading()
    else this.#noteHead()
  }

  /** Buffers the bytes after a request that is being served. */
  #keep(bytes: Buffer): void {
    this.#pipelined ??= new PipelinedBytes()
    this.#pipelined.push(bytes)
    this.#updateReading()
  }

  #noteHead(): void {
    if (!this.#parser.isInHead) this.#headSinceMs = undefined
    else this.#headSinceMs ??= this.#service.now()
  }

  /** While too much waits, nothing more is read. */
  #updateReading(): void {
    if (this.#state !== 'open') return
    const request = this.#request
    const bodyBytes = !request || request.complete ? 0 : request.waitingBytes
    const reads = bodyBytes + (this.#pipelined?.bytes ?? 0) < MAX_BUFFERED_INPUT
    if (reads === this.#isReading) return
    this.#isReading = reads
    if (reads) this.socket.resume()
    else this.socket.pause()
  }

  onHead(head: RequestHead): void {
    const service = this.#service
    const request = new Http1Request(this.socket, head, this)
    const response = new Http1Response(request, this, head.persistent && head.framing !== 'unknown')
    this.#request = request
    this.#response = response
    this.#headSinceMs = undefined
    this.#requests++
    if (service.isStopping && --this.#completeAtShutdown <= 0) response.closeAfterResponse()
    this.serve(request, response)
  }

  /** Its own method so that tests can see where the way of a request begins. */
  serve(request: Http1Request, response: Http1Response): void {
    this.#service.onRequest(this, request, response)
  }

  onBody(piece: Buffer): void {
    this.#request?.takePiece(piece)
  }

  onBodyEnd(trailers: readonly string[]): void {
    this.#request?.takeEnd(trailers)
    if (this.#response?.destroyed) this.#endExchange()
  }

  onBodyTaken(): void {
    this.#updateReading()
  }

  finishResponse(last: Buffer | undefined, behind: string): void {
    const response = this.#response
    this.output.finish(last, behind, () => this.#responseOut(response))
  }

  /** A response was handed to the system. */
  #responseOut(response: Http1Response | undefined): void {
    if (response !== this.#response || !response || response.destroyed) return
    // The client has gone before it could be written: that is told when the connection closes.
    if (this.#state === 'closed' || this.socket.destroyed) return
    response.takeClose()
    const request = this.#request
    if (this.#state !== 'open') return
    if (!response.shouldKeepAlive) this.#close(response.lingers || !request?.complete || this.#hasPipelined)
    else if (request?.complete) this.#endExchange()
    else request?.dump()
  }

  get #hasPipelined(): boolean {
    return this.#pipelined !== undefined && this.#pipelined.bytes > 0
  }

  /** The request has been read and answered. Reads the buffered bytes up to the end of the next one. */
  #endExchange(): void {
    this.#request = this.#response = undefined
    this.#idleSinceMs = this.#service.now()
    if (this.#pipelined) this.#guard(() => this.#readPipelined())
    else this.#updateReading()
  }

  /** A request is expected, or is not whole yet. */
  #readsRequests(): boolean {
    return this.#state === 'open' && !this.#request?.complete
  }

  #readPipelined(): void {
    const pipelined = this.#pipelined
    if (!pipelined) return
    while (this.#readsRequests()) {
      const piece = pipelined.shift()
      if (!piece) {
        this.#pipelined = undefined
        break
      }
      let at = 0
      while (at < piece.length && this.#readsRequests()) at = this.#parser.execute(piece, at)
      if (at < piece.length) pipelined.giveBack(piece.subarray(at))
    }
    if (!this.#request) this.#noteHead()
    this.#updateReading()
  }

  /** The input cannot be parsed: nothing more is read. */
  #fail(fault: RequestSyntaxError | 'late'): void {
    if (this.#state !== 'open' || this.#discardsInput) return
    this.#discardsInput = true
    this.#service.onFault(this, fault, this.exchange)
  }

  /** The head of a request does not arrive in time. */
  timeOut(): void {
    // Browsers open spare connections: one that was not used in time is closed without a response.
    if (this.#hasReceived) this.#fail('late')
    else this.socket.destroy()
  }

  /** Answers malformed input without a request object, and ends the connection. */
  refuse(
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
    this.#pipelined = undefined
    this.output.flush()
    // With bytes that have not been read, the system would reset the connection over the response.
    if (lingers) closeSoon(this.socket)
    else this.socket.destroySoon()
  }

  /** The client has ended its direction: it counts as disconnected. */
  onEnd(): void {
    this.readKept()
    if (this.#state !== 'open' || this.#discardsInput) return
    const { exchange } = this
    if (!exchange) {
      if (this.#preface?.hasBegun || this.#parser.isInHead)
        this.#fail(new RequestSyntaxError('connection closed before the end of the head'))
      else this.#close(false)
      return
    }
    const { request, response } = exchange
    if (!request.complete)
      return this.#fail(new RequestSyntaxError('connection closed before the end of the body'))
    // To HTTP/1.0, a response without a length would look complete at the end of the connection.
    if (response.isUndelimited && !response.writableEnded) return response.breakOff()
    this.closeSoon()
    if (!response.writableEnded) response.takeClose()
  }

  onDrain(): void {
    const response = this.#response
    if (response && !response.writableEnded) this.#guard(() => response.onDrain?.())
  }

  onClose(): void {
    const { exchange } = this
    this.#kept = undefined
    if (this.#state === 'tunnel') return
    this.#state = 'closed'
    this.#pipelined = undefined
    exchange?.response.takeClose()
    exchange?.request.takeClose()
    this.#request = this.#response = undefined
  }

  /** The gateway begins to stop: complete requests are still served. */
  stop(): void {
    const response = this.#response
    if (this.#pipelined) {
      const bytes = this.#pipelined.takeAll()
      this.#completeAtShutdown = countWholeRequests(bytes, this.#service.headLimits)
      this.#pipelined.push(bytes)
    }
    if (response && !response.headersSent && this.#completeAtShutdown === 0) response.closeAfterResponse()
  }

  /** Gives the socket away, without listeners. Returns the bytes received after the request in flight. */
  becomeTunnel(): Buffer {
    const rest = this.#pipelined?.takeAll() ?? Buffer.alloc(0)
    this.output.flush()
    this.#leave()
    this.#state = 'tunnel'
    return rest
  }

  #leave(): void {
    const { socket } = this
    this.#request = this.#response = this.#pipelined = undefined
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

/** Each error is followed by `close`. */
function ignore(): void {}
