import type { Socket } from 'node:net'
import { pauseReading } from '../message/pause-reading.ts'
import { AnsweredStreams } from './answered-streams.ts'
import {
  CONNECTION_WINDOW,
  ConnectionError,
  errorCodes,
  frameTypes,
  INITIAL_WINDOW,
  LAST_STREAM,
  numbersFrame,
  settingIds,
  settingsFrame,
} from './frames.ts'
import { Glitches } from './glitches.ts'
import type { OversizeMemory } from './header-block.ts'
import { HeldRequests } from './held-requests.ts'
import { Http2Input, type Http2InputOwner } from './input.ts'
import { Http2Output, type OutputEvents } from './output/output.ts'
import { readRequestFields, unreadFields } from './request-fields.ts'
import type { Http2Request } from './request.ts'
import type { Http2Response } from './response.ts'
import { Http2Stream, type StreamOwner } from './stream.ts'

export type Http2Options = {
  /** Maximum bytes of a request's headers: names, values and 32 for each header. */
  readonly maxHeaderBytes: number
  /** Maximum concurrent requests. */
  readonly maxStreams: number
  /** Time in which a client must read some of the pending output when one of its streams is reset. */
  readonly sendMs: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Returns the memory for large header blocks that a connection shares with others; by default each has its own. */
  readonly oversizeMemoryOf?: (socket: Socket) => OversizeMemory
  /** Whether unread responses take so much memory that connections with many of them get no further ones. */
  readonly isPressed: () => boolean
  /** Returns the client of a request, if the peer is a proxy with requests of many; otherwise the same for all requests. */
  clientOf(request: Http2Request): string
  serve(request: Http2Request, response: Http2Response): void
  /** The headers of a request exceed `maxHeaderBytes`. Of the request, only its method is known. */
  onHeadersTooLarge(request: Http2Request, response: Http2Response): void
  /** A request was malformed, and its stream was reset. */
  onMalformed(): void
  /** An exception in the connection itself, which is a bug. The connection is closed. */
  onException(error: unknown): void
}

/** How long a client may take to close its connection after a GOAWAY. */
const LINGER_MS = 2_000
/** A stream error counts as this many glitches. */
const ERROR_WEIGHT = 10
/** Weight of a request that is not served, because the client may have sent it before it received the GOAWAY. */
const IGNORED_WEIGHT = 0.25

/**
 * The server's side of an HTTP/2 connection (RFC 9113): its streams, from the first frame to the last, and how it closes. `Http2Input`
 * reads frames, `Http2Output` writes them.
 */
export class Http2Connection implements Http2InputOwner, StreamOwner, OutputEvents<Http2Stream> {
  readonly socket: Socket
  readonly output: Http2Output<Http2Stream>
  isClosed = false
  /** Requests in flight: they are being served, or the operating system has not taken all of their response yet. */
  openRequests = 0
  idleSinceMs: number
  requests = 0
  responsesSent = 0
  readonly #options: Http2Options
  readonly #input: Http2Input
  readonly #glitches: Glitches
  readonly streams = new Map<number, Http2Stream>()
  readonly answered: AnsweredStreams
  /** Streams opened by this read, whose requests have not been served yet. */
  #fresh: Http2Stream[] = []
  readonly #held: HeldRequests<Http2Stream>
  lastStream = 0
  /** The last stream that is served, as announced to the client by GOAWAY; `LAST_STREAM` before that. */
  #lastServed = LAST_STREAM
  #isPaused = false
  #isReading = false
  /**
   * Whether the client has sent GOAWAY. It concerns streams of the server, so the client may still send requests (RFC 9113 section 6.8).
   */
  #closesWhenIdle = false
  #cutOff: NodeJS.Timeout | undefined

  /** @param socket no other code may read from it; its bytes begin with the preface */
  constructor(socket: Socket, options: Http2Options) {
    this.socket = socket
    this.#options = options
    this.idleSinceMs = options.now()
    const { maxHeaderBytes, now, oversizeMemoryOf } = options
    this.#input = new Http2Input(
      this,
      maxHeaderBytes,
      now,
      oversizeMemoryOf && (() => oversizeMemoryOf(socket)),
    )
    this.#glitches = new Glitches(options.now)
    this.#held = new HeldRequests<Http2Stream>(this, options.isPressed, options.now, (stream) =>
      this.#serve(stream),
    )
    this.output = new Http2Output(socket, this)
    this.answered = new AnsweredStreams(options.maxStreams, options.now, (id) => {
      this.output.sendReset(id, errorCodes.noError)
      this.closeIfDone()
    })
    this.output.send(
      settingsFrame([
        [settingIds.maxConcurrentStreams, options.maxStreams],
        [settingIds.maxHeaderListSize, options.maxHeaderBytes],
      ]),
    )
    this.output.send(numbersFrame(frameTypes.windowUpdate, 0, 0, CONNECTION_WINDOW - INITIAL_WINDOW))
    socket.on('data', this.read)
    socket.on('drain', this.#onDrain)
    // Each error is followed by `close`. A client that half-closes the connection counts as disconnected.
    socket.on('error', () => undefined)
    socket.on('end', () => socket.destroy())
    socket.on('close', this.#onClose)
  }

  /** Since when a header block, or a frame other than DATA, has been incomplete, in monotonic milliseconds. */
  get partSinceMs(): number | undefined {
    return this.#input.partSinceMs
  }

  /** Takes the next bytes of the connection. */
  readonly read = (chunk: Buffer): void => {
    try {
      this.#isReading = true
      this.#input.read(chunk)
      this.#serveNewStreams()
      this.#isReading = false
      if (this.#closesWhenIdle) this.closeIfDone()
      if (this.output.isBacklogged) this.#pause()
    } catch (error) {
      this.#isReading = false
      if (!(error instanceof ConnectionError)) this.#options.onException(error)
      this.closeNow(error instanceof ConnectionError ? error.code : errorCodes.internalError)
    }
  }

  #serveNewStreams(): void {
    if (this.#fresh.length === 0) return
    const fresh = this.#fresh
    this.#fresh = []
    for (const stream of fresh) if (stream.isOpen) this.#serveOrHold(stream)
    this.closeIfDone()
  }

  #serveOrHold(stream: Http2Stream): void {
    if (!this.#held.mustHold(stream)) this.#serve(stream)
    // Its body would stay in memory. The client may send the request again, because it was not processed (RFC 9113 section 8.7).
    else if (stream.request.hasContent) this.resetStream(stream, errorCodes.refusedStream)
    else this.#held.hold(stream)
  }

  #serve(stream: Http2Stream): void {
    this.openRequests++
    this.requests++
    stream.isServed = true
    this.#options.serve(stream.request, stream.response)
  }

  open(id: number, list: readonly string[], endsStream: boolean, isTooLarge: boolean): void {
    this.lastStream = id
    if (id > this.#lastServed) return this.glitch(IGNORED_WEIGHT)
    if (this.streams.size >= this.#options.maxStreams) {
      this.glitch(1)
      this.output.sendReset(id, errorCodes.refusedStream)
      return
    }
    const fields = isTooLarge ? unreadFields(list) : readRequestFields(list)
    if (!fields || (endsStream && (fields.contentLength ?? 0) > 0)) {
      this.#options.onMalformed()
      return this.failStream(id, errorCodes.protocolError)
    }
    const stream = new Http2Stream(this, id, fields, endsStream)
    this.streams.set(id, stream)
    if (!isTooLarge) this.#fresh.push(stream)
    else {
      this.openRequests++
      stream.isServed = true
      this.#options.onHeadersTooLarge(stream.request, stream.response)
    }
  }

  /** @throws {ConnectionError} */
  glitch(weight: number): void {
    if (!this.#glitches.add(weight))
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many frames without effect (flood)')
  }

  /** @throws {ConnectionError} */
  requestGlitch(weight: number): void {
    if (this.#glitches.add(weight)) return
    if (this.#lastServed !== LAST_STREAM)
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many faulty or cancelled requests (flood)')
    this.#glitches.renew()
    this.close()
  }

  cancelStream(stream: Http2Stream): void {
    this.#cutOffUnlessDrained()
    this.dropStream(stream)
    this.requestGlitch(1)
  }

  /** Resets a stream because of an error of the client. */
  failStream(id: number, code: number): void {
    const stream = this.streams.get(id)
    if (stream) this.resetStream(stream, code)
    else this.output.sendReset(id, code)
    this.requestGlitch(ERROR_WEIGHT)
  }

  resetStream(stream: Http2Stream, code: number): void {
    if (!stream.isOpen) return
    this.#held.countReset(stream)
    this.output.sendReset(stream.id, code)
    this.#cutOffUnlessDrained()
    this.dropStream(stream)
  }

  /**
   * Closes the connection if the client does not read the pending output in time. Once a stream has been reset, nothing else watches what
   * was written for it; and a client that does not read its responses does not read a reset either.
   */
  #cutOffUnlessDrained(): void {
    if (this.socket.writableNeedDrain)
      this.#cutOff ??= setTimeout(() => this.socket.destroy(), this.#options.sendMs).unref()
  }

  dropStream(stream: Http2Stream): void {
    this.streams.delete(stream.id)
    this.output.remove(stream)
    stream.onClosed()
    this.#countFinished(stream)
  }

  clientOf(request: Http2Request): string {
    return this.#options.clientOf(request)
  }

  onLocalEnd(stream: Http2Stream): void {
    this.streams.delete(stream.id)
    stream.isOpen = false
    if (stream.hasRemoteEnded) return
    this.answered.add(stream)
    stream.dropRest()
  }

  onTruncated(stream: Http2Stream): void {
    this.resetStream(stream, errorCodes.internalError)
  }

  onSent(stream: Http2Stream): void {
    this.responsesSent++
    stream.response.markClosed()
    this.#countFinished(stream)
    this.#held.onRead(stream)
  }

  onException(error: unknown): void {
    this.#options.onException(error)
    this.socket.destroy()
  }

  #countFinished(stream: Http2Stream): void {
    if (!stream.isServed) return
    stream.isServed = false
    this.openRequests--
    this.idleSinceMs = this.#options.now()
    this.closeIfDone()
  }

  /** Closes the connection, if it is closing and all received requests are answered. */
  closeIfDone(): void {
    if (this.openRequests > 0 || this.#fresh.length > 0) return
    if (this.#lastServed === LAST_STREAM) {
      if (this.#closesWhenIdle && !this.#isReading && this.#held.isEmpty) this.close()
      return
    }
    if (this.answered.isEmpty && this.#held.isEmpty) this.#shutDown()
  }

  /** Sends a GOAWAY with the highest stream id, so that requests that the client sends before it receives the frame are still served. */
  announceClose(): void {
    if (!this.isClosed) this.#sendGoaway(LAST_STREAM, errorCodes.noError)
  }

  /** Serves no further requests, and closes the connection when all received ones are answered. */
  close(): void {
    if (this.isClosed || this.#lastServed !== LAST_STREAM) return
    this.#lastServed = this.lastStream
    this.#sendGoaway(this.#lastServed, errorCodes.noError)
    this.closeIfDone()
  }

  closeWhenIdle(): void {
    this.#closesWhenIdle = true
  }

  #sendGoaway(lastStream: number, code: number): void {
    this.output.send(numbersFrame(frameTypes.goaway, 0, 0, lastStream, code))
  }

  /** Closes the connection now, with a GOAWAY. Requests in flight are aborted. @param code of the error */
  closeNow(code: number = errorCodes.noError): void {
    if (this.isClosed) return
    // The announced stream must not become a higher one (section 6.8).
    this.#sendGoaway(Math.min(this.lastStream, this.#lastServed), code)
    this.#shutDown()
    this.#dropStreams()
  }

  /** Flushes the output. Further input is read and dropped, because unread bytes would make the operating system reset the connection. */
  #shutDown(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.output.flush()
    this.#input.close()
    this.answered.clear()
    this.#held.clear()
    const { socket } = this
    socket.off('data', this.read)
    socket.on('data', () => undefined)
    socket.resume()
    socket.end()
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }

  #pause(): void {
    if (this.#isPaused || this.isClosed) return
    this.#isPaused = true
    this.#input.partSinceMs = undefined
    pauseReading(this.socket)
  }

  readonly #onDrain = (): void => {
    clearTimeout(this.#cutOff)
    this.#cutOff = undefined
    if (!this.#isPaused || this.output.isBacklogged) return
    this.#isPaused = false
    this.socket.resume()
  }

  readonly #onClose = (): void => {
    this.isClosed = true
    this.#input.close()
    this.answered.clear()
    this.#held.clear()
    clearTimeout(this.#cutOff)
    this.output.drop()
    this.#dropStreams()
  }

  #dropStreams(): void {
    for (const stream of [...this.streams.values()]) this.dropStream(stream)
  }
}
