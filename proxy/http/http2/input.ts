import type { AnsweredStreams } from './answered-streams.ts'
import { FrameReader, type FrameSink } from './frame-reader.ts'
import { CONNECTION_WINDOW, ConnectionError, errorCodes, flags, frameTypes, numbersFrame } from './frames.ts'
import { HeaderBlock, type OversizeMemory } from './header-block.ts'
import { HpackDecoder } from './hpack/decoder.ts'
import type { Http2Output } from './output/output.ts'
import { readTrailerFields } from './request-fields.ts'
import { applySettings } from './settings.ts'
import type { Http2Stream } from './stream.ts'

/** The connection that receives the frames. */
export type Http2InputOwner = {
  readonly output: Pick<
    Http2Output<Http2Stream>,
    'send' | 'takeHasResponded' | 'widen' | 'widenStream' | 'resizeTable' | 'setInitialWindow'
  >
  readonly isClosed: boolean
  /** The open streams, by id. */
  readonly streams: ReadonlyMap<number, Http2Stream>
  readonly answered: Pick<AnsweredStreams, 'get' | 'end' | 'delete'>
  /** The id of the last stream that the client has opened. */
  readonly lastStream: number
  /** The client opens a stream. @param list the fields of the request; if they exceed the limit, those that fit */
  open(id: number, list: readonly string[], endsStream: boolean, isTooLarge: boolean): void
  /** The client has reset a stream. @throws {ConnectionError} if there are too many */
  cancelStream(stream: Http2Stream): void
  /** Resets a stream because of an error of the client. @throws {ConnectionError} if there are too many */
  failStream(id: number, code: number): void
  /** Counts a frame that no request needs in large numbers. @throws {ConnectionError} if there are too many */
  glitch(weight: number): void
  /**
   * Counts a glitch that a single request causes. A proxy passes on what any of its clients send, so before the connection ends because of
   * such glitches, the requests in flight are finished. @throws {ConnectionError} if there are too many even then
   */
  requestGlitch(weight: number): void
  /** Closes the connection if it is closing and all received requests are answered. */
  closeIfDone(): void
  /** The client is about to close: closes the connection as soon as no request is in flight. Until then requests are served. */
  closeWhenIdle(): void
}

/** Weight of frames on a stream that was reset before the client could know of it. */
const LATE_WEIGHT = 0.25
const PRIORITY_BYTES = 5
const MIN_GOAWAY_BYTES = 8

/** The input of an HTTP/2 connection: checks order and content of frames (RFC 9113), with a method for each type of frame. */
export class Http2Input implements FrameSink {
  /** When the incomplete header block, or incomplete frame other than DATA, began, in monotonic milliseconds. */
  partSinceMs: number | undefined
  readonly #owner: Http2InputOwner
  readonly #now: () => number
  readonly #reader = new FrameReader(this)
  readonly #decoder: HpackDecoder
  readonly #block: HeaderBlock
  #hasSettings = false
  #receiveWindow = CONNECTION_WINDOW
  #dataStream: Http2Stream | undefined
  #dataEnds = false
  #dataHasContent = false
  /** Padding bytes in the payload of the current DATA frame. */
  #dataPadding = 0
  /** Streams with content of this read that is not flushed yet. */
  #withContent: Http2Stream[] = []

  /**
   * @param maxHeaderBytes of a request: names, values and 32 for each header
   * @param now monotonic milliseconds
   * @param memoryOfPeer returns the memory for large header blocks that the peer shares with others
   */
  constructor(
    owner: Http2InputOwner,
    maxHeaderBytes: number,
    now: () => number,
    memoryOfPeer?: () => OversizeMemory,
  ) {
    this.#owner = owner
    this.#now = now
    this.#decoder = new HpackDecoder(maxHeaderBytes)
    this.#block = new HeaderBlock(maxHeaderBytes, memoryOfPeer)
  }

  get isClosed(): boolean {
    return this.#owner.isClosed
  }

  /** Takes the next bytes of the connection. @throws {ConnectionError} */
  read(chunk: Buffer): void {
    this.#reader.read(chunk)
    if (this.#withContent.length > 0) this.#flushContent()
    if (this.#block.isOpen || this.#reader.isWithinFrame) this.partSinceMs ??= this.#now()
    else this.partSinceMs = undefined
  }

  /** The connection has closed: nothing more is read. */
  close(): void {
    this.#block.drop()
  }

  onFrame(type: number, flagBits: number, id: number, payload: Buffer): void {
    this.#checkOrder(type, id)
    if (type !== frameTypes.continuation) this.partSinceMs = undefined
    switch (type) {
      case frameTypes.headers:
        return this.#onHeaders(flagBits, id, payload)
      case frameTypes.continuation:
        this.#block.add(payload)
        if (payload.length === 0) this.#owner.glitch(1)
        if ((flagBits & flags.endHeaders) !== 0) this.#onHeaderBlock()
        return
      case frameTypes.rstStream:
        return this.#onReset(id, payload)
      case frameTypes.settings:
        return this.#onSettings(flagBits, id, payload)
      case frameTypes.ping:
        return this.#onPing(flagBits, id, payload)
      case frameTypes.windowUpdate:
        return this.#onWindowUpdate(id, payload)
      case frameTypes.goaway:
        return this.#onGoaway(id, payload)
      case frameTypes.pushPromise:
        throw new ConnectionError(errorCodes.protocolError, 'PUSH_PROMISE from a client')
      case frameTypes.priority:
        if (id === 0) throw new ConnectionError(errorCodes.protocolError, 'PRIORITY on stream 0')
        if (payload.length !== PRIORITY_BYTES) this.#onWrongPriority(id)
    }
    // PRIORITY has no meaning any more, and unknown types are ignored (sections 5.3.2 and 5.5).
    this.#owner.glitch(1)
  }

  /** A stream that the client has not opened cannot be reset (section 6.4). */
  #onWrongPriority(id: number): void {
    if (id > this.#owner.lastStream)
      throw new ConnectionError(errorCodes.frameSizeError, 'PRIORITY length is not 5')
    this.#owner.failStream(id, errorCodes.frameSizeError)
  }

  #onGoaway(id: number, payload: Buffer): void {
    if (id !== 0) throw new ConnectionError(errorCodes.protocolError, 'GOAWAY on a stream other than 0')
    if (payload.length < MIN_GOAWAY_BYTES)
      throw new ConnectionError(errorCodes.frameSizeError, 'GOAWAY shorter than 8 bytes')
    this.#owner.glitch(1)
    this.#owner.closeWhenIdle()
  }

  /** The first frame must be SETTINGS, and no other frame may come between the frames of a header block. */
  #checkOrder(type: number, id: number): void {
    if (!this.#hasSettings && type !== frameTypes.settings)
      throw new ConnectionError(errorCodes.protocolError, 'frame before the first SETTINGS')
    const isContinued = this.#block.isOpen
    if (isContinued !== (type === frameTypes.continuation) || (isContinued && id !== this.#block.stream))
      throw new ConnectionError(errorCodes.protocolError, 'CONTINUATION missing or unexpected')
  }

  #onHeaders(flagBits: number, id: number, payload: Buffer): void {
    if (id % 2 === 0)
      throw new ConnectionError(errorCodes.protocolError, 'HEADERS on an even-numbered stream')
    this.#block.begin(id, flagBits, payload)
    if ((flagBits & flags.endHeaders) !== 0) this.#onHeaderBlock()
  }

  /** A header block is complete. It is decoded in any case: the dynamic table of later blocks depends on it. */
  #onHeaderBlock(): void {
    const { stream: id, endsStream } = this.#block
    const list = this.#decoder.decode(this.#block.take())
    const { isTooLarge } = this.#decoder
    // One byte of a block may stand for a whole table entry.
    if (isTooLarge) this.#owner.requestGlitch(1)
    const stream = this.#owner.streams.get(id)
    if (stream) this.#onTrailers(stream, isTooLarge ? undefined : list, endsStream)
    else if (id > this.#owner.lastStream) this.#owner.open(id, list, endsStream, isTooLarge)
    else this.#onLateHeaders(id, list, endsStream)
  }

  /**
   * Trailers may arrive on a stream that was reset before the client could know. A request may not: its stream id must be new
   * (section 5.1.1).
   */
  #onLateHeaders(id: number, list: readonly string[], endsStream: boolean): void {
    if (list[0]?.startsWith(':'))
      throw new ConnectionError(errorCodes.protocolError, 'request on a stream id that was used or skipped')
    if (!endsStream || !this.#owner.answered.end(id)) this.#owner.requestGlitch(LATE_WEIGHT)
  }

  #onTrailers(stream: Http2Stream, list: readonly string[] | undefined, endsStream: boolean): void {
    if (stream.hasRemoteEnded) return this.#owner.failStream(stream.id, errorCodes.streamClosed)
    const trailers = list && endsStream ? readTrailerFields(list) : undefined
    if (!trailers) return this.#owner.failStream(stream.id, errorCodes.protocolError)
    stream.request.rawTrailers = trailers
    this.#endRemote(stream)
  }

  onDataFrame(flagBits: number, id: number, length: number): void {
    this.#checkOrder(frameTypes.data, id)
    this.partSinceMs = undefined
    this.#receiveWindow -= length
    if (this.#receiveWindow < 0)
      throw new ConnectionError(
        errorCodes.flowControlError,
        'DATA exceeds the flow-control window of the connection',
      )
    this.#dataStream = undefined
    this.#dataEnds = (flagBits & flags.endStream) !== 0
    this.#dataPadding = length
    this.#dataHasContent = false
    const stream = this.#owner.streams.get(id) ?? this.#owner.answered.get(id)
    if (!stream) {
      if (id === 0 || id > this.#owner.lastStream || id % 2 === 0)
        throw new ConnectionError(errorCodes.protocolError, 'DATA on a stream that is not open')
      return this.#owner.requestGlitch(LATE_WEIGHT)
    }
    const error = stream.onDataFrame(length)
    if (error !== undefined) {
      this.#owner.answered.delete(id)
      this.#owner.failStream(id, error)
    } else if (stream.isOpen) this.#dataStream = stream
    else if (this.#dataEnds) this.#owner.answered.end(id)
    else stream.onConsumed(length)
  }

  onData(bytes: Buffer, from: number, to: number): void {
    const stream = this.#dataStream
    this.#dataPadding -= to - from
    this.#dataHasContent = true
    if (!stream?.isOpen) return
    const hadContent = stream.hasUnflushedContent()
    const error = stream.onData(bytes, from, to)
    if (error !== undefined) this.#owner.failStream(stream.id, error)
    else if (!hadContent && stream.hasUnflushedContent()) this.#withContent.push(stream)
  }

  #flushContent(): void {
    const streams = this.#withContent
    this.#withContent = []
    for (const stream of streams) stream.flushContent()
  }

  onDataEnd(): void {
    if (this.isClosed) return
    // Reopens the window of the connection at once, because one stream must not block the others. The windows of the streams bound the data
    // that is buffered for slow backends.
    if (this.#receiveWindow < CONNECTION_WINDOW / 2) {
      this.#owner.output.send(
        numbersFrame(frameTypes.windowUpdate, 0, 0, CONNECTION_WINDOW - this.#receiveWindow),
      )
      this.#receiveWindow = CONNECTION_WINDOW
    }
    if (!this.#dataHasContent && !this.#dataEnds) this.#owner.glitch(1)
    const stream = this.#dataStream
    this.#dataStream = undefined
    if (!stream?.isOpen) return
    if (this.#dataEnds) this.#endRemote(stream)
    else if (this.#dataPadding > 0) stream.onConsumed(this.#dataPadding)
  }

  #endRemote(stream: Http2Stream): void {
    const error = stream.onRemoteEnd()
    if (error !== undefined) this.#owner.failStream(stream.id, error)
  }

  #onReset(id: number, payload: Buffer): void {
    this.#checkStream(id)
    if (payload.length !== 4)
      throw new ConnectionError(errorCodes.frameSizeError, 'RST_STREAM length is not 4')
    const stream = this.#owner.streams.get(id)
    this.#owner.answered.delete(id)
    if (stream) return this.#owner.cancelStream(stream)
    // It weighs less than that of an open stream, because clients reset uploads that were answered.
    this.#owner.requestGlitch(LATE_WEIGHT)
    this.#owner.closeIfDone()
  }

  #onSettings(flagBits: number, id: number, payload: Buffer): void {
    if (id !== 0) throw new ConnectionError(errorCodes.protocolError, 'SETTINGS on a stream other than 0')
    if ((flagBits & flags.ack) !== 0) {
      if (!this.#hasSettings)
        throw new ConnectionError(
          errorCodes.protocolError,
          'SETTINGS acknowledgement before the first SETTINGS',
        )
      if (payload.length > 0)
        throw new ConnectionError(errorCodes.frameSizeError, 'SETTINGS acknowledgement with a payload')
      return
    }
    this.#hasSettings = true
    this.#owner.glitch(1)
    applySettings(payload, this.#owner.output, this.#owner.streams)
    this.#owner.output.send(numbersFrame(frameTypes.settings, flags.ack, 0))
  }

  #onPing(flagBits: number, id: number, payload: Buffer): void {
    if (id !== 0) throw new ConnectionError(errorCodes.protocolError, 'PING on a stream other than 0')
    if (payload.length !== 8) throw new ConnectionError(errorCodes.frameSizeError, 'PING length is not 8')
    if ((flagBits & flags.ack) !== 0) return
    // gRPC clients measure the connection with a PING for each piece of a response, hundreds per second.
    if (!this.#owner.output.takeHasResponded()) this.#owner.glitch(1)
    const [first, second] = [payload.readUInt32BE(0), payload.readUInt32BE(4)]
    this.#owner.output.send(numbersFrame(frameTypes.ping, flags.ack, 0, first, second))
  }

  #onWindowUpdate(id: number, payload: Buffer): void {
    if (payload.length !== 4)
      throw new ConnectionError(errorCodes.frameSizeError, 'WINDOW_UPDATE length is not 4')
    const bytes = payload.readUInt32BE(0) & 0x7fff_ffff
    if (id === 0) {
      if (bytes === 0) throw new ConnectionError(errorCodes.protocolError, 'WINDOW_UPDATE increment is 0')
      return this.#owner.output.widen(bytes)
    }
    this.#checkStream(id)
    const stream = this.#owner.streams.get(id)
    if (!stream) return
    if (bytes === 0) this.#owner.failStream(id, errorCodes.protocolError)
    else if (!this.#owner.output.widenStream(stream, bytes))
      this.#owner.failStream(id, errorCodes.flowControlError)
  }

  /** Frames other than HEADERS must be on streams that the client has opened. */
  #checkStream(id: number): void {
    if (id === 0 || id % 2 === 0 || id > this.#owner.lastStream)
      throw new ConnectionError(errorCodes.protocolError, 'frame on a stream that is not open')
  }
}
