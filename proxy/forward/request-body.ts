import type { Http2ServerRequest } from 'node:http2'
import type { Socket } from 'node:net'
import { declaredLength } from '../http/framing.ts'
import type { ClientRequest } from '../http/messages.ts'
import type { UpstreamChannel } from '../upstream/exchange.ts'

/** Called when the body cannot be forwarded any further. */
export type BodyHooks = {
  /**
   * Whether the backend still reads the body. If not, the rest is read and dropped: the client's next request follows
   * it.
   */
  isWantedBy(connection: UpstreamChannel): boolean
  /** The body exceeds its limit. Nothing more is sent to the backend. */
  overLimit(): void
  /** The client has reset the HTTP/2 stream: what arrived must not be taken for the whole body. */
  takenBack(): void
}

/**
 * Streams the body of a request to the backend, with back-pressure. It is framed anew: by length if the client declared
 * one, else chunked.
 */
export class RequestBody {
  readonly #request: ClientRequest
  readonly #maxBytes: number
  readonly #hooks: BodyHooks
  #bytes = 0
  #reading = false

  /** @param maxBytes 0 is no limit */
  constructor(request: ClientRequest, maxBytes: number, hooks: BodyHooks) {
    this.#request = request
    this.#maxBytes = maxBytes
    this.#hooks = hooks
  }

  /** Bytes that the client has sent so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** All of it has arrived, read or not. */
  get isHere(): boolean {
    return isHere(this.#request)
  }

  /** Whether it is waiting for the client to send more. */
  get isAwaited(): boolean {
    return this.#reading && !this.#request.isPaused()
  }

  /** @param head the request's head, still without the fields that frame the body and the empty line */
  sendTo(connection: UpstreamChannel, head: string): void {
    const request = this.#request
    const hooks = this.#hooks
    const { socket } = connection
    const declared = declaredLength(request)
    // Corked until the first piece of the body has arrived, usually at once, so that both are sent in one packet.
    socket.cork()
    setImmediate(() => socket.uncork())
    const framing = declared === undefined ? 'transfer-encoding: chunked' : `content-length: ${declared}`
    socket.write(`${head}${framing}\r\n\r\n`, 'latin1')

    const onDrain = (): void => {
      connection.requestStalled(false)
      request.resume()
    }
    /** No more of it can be sent: what comes is dropped. */
    const onError = (): void => void request.resume()
    const stop = (): void => {
      this.#reading = false
      request.off('data', onData)
      request.off('end', onEnd)
      socket.off('drain', onDrain)
      socket.off('error', onError)
    }
    /** For event listeners, whose exceptions would be uncaught ones. */
    const guarded = (step: () => void): void => {
      try {
        step()
      } catch (error) {
        stop()
        connection.failFor(error)
      }
    }
    const onData = (chunk: Buffer): void => guarded(() => passOn(chunk))
    const onEnd = (): void => guarded(finish)
    const passOn = (chunk: Buffer): void => {
      if (!hooks.isWantedBy(connection)) {
        stop()
        request.resume()
      } else if (this.#isOverLimit(chunk.length)) {
        stop()
        hooks.overLimit()
      } else {
        if (declared === undefined) writeChunk(socket, chunk)
        else socket.write(chunk)
        if (!socket.writableNeedDrain) return
        connection.requestStalled(true)
        request.pause()
      }
    }
    const finish = (): void => {
      stop()
      if (!hooks.isWantedBy(connection)) return
      if (wasTakenBack(request)) return hooks.takenBack()
      if (declared === undefined) socket.write('0\r\n\r\n', 'latin1')
      connection.requestSent()
    }
    this.#reading = true
    request.on('data', onData)
    request.on('end', onEnd)
    socket.on('drain', onDrain)
    socket.on('error', onError)
  }

  #isOverLimit(bytes: number): boolean {
    this.#bytes += bytes
    return this.#maxBytes > 0 && this.#bytes > this.#maxBytes
  }
}

function isHere(request: ClientRequest | Http2ServerRequest): boolean {
  return 'stream' in request ? request.stream.state.remoteClose === 1 : request.complete
}

/** The stream of HTTP/2 was reset: what has arrived of the body ends too. */
function wasTakenBack(request: ClientRequest | Http2ServerRequest): boolean {
  return 'stream' in request && request.stream.closed
}

/** One chunk of RFC 9112 section 7.1, in one write. */
function writeChunk(socket: Socket, chunk: Buffer): void {
  socket.cork()
  socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
  socket.write(chunk)
  socket.write('\r\n', 'latin1')
  socket.uncork()
}
