import { detachBuffer } from '../../message/detach-buffer.ts'
import type { ClientRequest } from '../../message/client-request.ts'
import { BodyMemory } from './body-memory.ts'

/** Bytes of the held bodies of all clients together. */
const TOTAL_BYTES = 64 * 1024 * 1024
const SMALLEST_ROOM = 1024
/** A body that is a small part of a read larger than this is copied, so that it does not keep the whole read in memory. */
const MAX_SMALL_READ = 4 * 1024

/** The memory for held bodies: 64 MiB, of which one client gets a quarter. */
export function createHeldBodyMemory(): BodyMemory {
  return new BodyMemory(TOTAL_BYTES, TOTAL_BYTES / 4)
}

export type HeldBodyOptions = {
  readonly memory: BodyMemory
  /** The client whose share of the memory is used: an IPv4 address or an IPv6 network. */
  readonly client: string
  /** Maximum bytes to hold. The part of a longer body that has arrived is buffered, and the rest is not read yet. */
  readonly maxBytes: number
  /** Waits only for the part of the body that arrives in this turn of the event loop. */
  readonly onlyThisTurn?: boolean
  /** Runs a step so that its exceptions fail the request. */
  readonly guard: (step: () => void) => void
}

/** The whole body, or the reason why it was not read. */
export type ReadBody = Buffer | 'size' | 'memory' | 'turn'

/**
 * The body of a request, buffered until it is decided whether the request is forwarded: at most `maxBytes` and one piece of it.
 * `RequestBody` then forwards it as if it had not been read.
 *
 * The received bytes are copied to a single buffer. Otherwise, a client that sends single bytes would take hundreds of bytes for each.
 */
export class HeldBody {
  readonly #request: ClientRequest
  readonly #options: HeldBodyOptions
  readonly #onRead: (body: ReadBody) => void
  #room: Buffer = nothing
  #bytes = 0
  /** Bytes that this body uses of `memory`, which all held bodies share. */
  #reservedBytes = 0
  #state: 'reading' | 'whole' | 'begun' | 'gone' = 'reading'

  /** @param onRead called once; never if the client disconnects before */
  constructor(request: ClientRequest, options: HeldBodyOptions, onRead: (body: ReadBody) => void) {
    this.#request = request
    this.#options = options
    this.#onRead = onRead
    request.on('data', this.#onData)
    request.on('end', this.#onEnd)
    // Runs after the request has emitted the data that has already arrived.
    if (options.onlyThisTurn) process.nextTick(this.#onTurn)
  }

  /** Bytes of the body; undefined if it has not arrived whole. */
  get wholeBytes(): number | undefined {
    return this.#state === 'whole' ? this.#bytes : undefined
  }

  /** The bytes received so far, which stay buffered. */
  get received(): Buffer {
    return this.#room.subarray(0, this.#bytes)
  }

  /** Takes out the received bytes, and returns whether they are the whole body. */
  take(): { readonly bytes: Buffer; readonly isWhole: boolean } {
    const taken = { bytes: this.#room.subarray(0, this.#bytes), isWhole: this.#state === 'whole' }
    this.#release()
    return taken
  }

  /** Call if the request is not forwarded. The rest of the body is read and dropped, because the client's next request follows it. */
  drop(): void {
    if (this.#state === 'gone') return
    this.#release()
    this.#request.resume()
  }

  readonly waitsForBody = true
  readonly isTruncated = false
  readonly bufferedBytes = 0
  readonly sentBytes = 0

  get clientProgress(): number {
    return this.#bytes
  }

  abandon(): void {
    this.drop()
  }

  readonly #onData = (chunk: Buffer): void =>
    this.#options.guard(() => {
      const { maxBytes } = this.#options
      const hasRoom = this.#append(chunk)
      if (hasRoom && this.#bytes <= maxBytes) return
      this.#request.pause()
      this.#stopReading('begun')
      this.#onRead(hasRoom ? 'size' : 'memory')
    })

  readonly #onTurn = (): void =>
    this.#options.guard(() => {
      // If the body is complete, `end` follows in the same turn.
      if (this.#state !== 'reading' || this.#request.complete) return
      this.#request.pause()
      this.#stopReading('begun')
      this.#onRead('turn')
    })

  readonly #onEnd = (): void =>
    this.#options.guard(() => {
      this.#stopReading('whole')
      this.#onRead(this.#room.subarray(0, this.#bytes))
    })

  /** Buffers a piece, even if it exceeds the memory for bodies. Returns whether there was memory for it. */
  #append(chunk: Buffer): boolean {
    const needed = this.#bytes + chunk.length
    // A body of a single piece needs no copy. It keeps the buffer of its read alive, which usually has little more than the head in
    // addition.
    if (this.#bytes === 0 && this.#request.complete && this.#request.bufferedBytes === 0) {
      this.#room = chunk.buffer.byteLength > MAX_SMALL_READ ? detachBuffer(chunk) : chunk
      this.#bytes = needed
      return this.#reserve(this.#room.buffer.byteLength)
    }
    let hasRoom = true
    if (needed > this.#room.length) {
      const more = Math.max(needed, 2 * this.#room.length, SMALLEST_ROOM) - this.#room.length
      hasRoom = this.#reserve(more)
      const room = Buffer.allocUnsafeSlow(this.#room.length + more)
      this.#room.copy(room, 0, 0, this.#bytes)
      this.#room = room
    }
    chunk.copy(this.#room, this.#bytes)
    this.#bytes = needed
    return hasRoom
  }

  #reserve(bytes: number): boolean {
    const hasRoom = this.#options.memory.reserve(this.#options.client, bytes)
    if (hasRoom) this.#reservedBytes += bytes
    return hasRoom
  }

  #stopReading(state: 'whole' | 'begun' | 'gone'): void {
    this.#state = state
    this.#request.off('data', this.#onData)
    this.#request.off('end', this.#onEnd)
  }

  #release(): void {
    if (this.#state === 'gone') return
    this.#stopReading('gone')
    this.#options.memory.release(this.#options.client, this.#reservedBytes)
    // Freed now, since the response may take minutes.
    this.#room = nothing
  }
}

const nothing: Buffer = Buffer.alloc(0)
