import { copyBytes } from '../message/detach-buffer.ts'
import { ConnectionError, errorCodes, flags, MAX_FRAME_BYTES } from './frames.ts'

/**
 * A block may be this many times as large as the maximum of headers, because it must be decoded before the request can be answered with
 * 431.
 */
const SLACK = 4
const PRIORITY_BYTES = 5
/**
 * Proxies pass on larger blocks than the gateway has announced: Envoy allows heads of 60 KB unless told otherwise, nghttpx
 * heads of 64 KB. A block that is too large ends the connection, with the requests of all clients on it.
 */
const MIN_PROXY_BLOCK_BYTES = 256 * 1024
/** Memory for the bytes by which the blocks of all connections exceed their maximum. */
const MAX_OVERSIZE_BYTES = 16 * 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Memory that the incomplete blocks of many connections share for bytes beyond the maximum of headers. A block that long almost always
 * belongs to a request that is answered with 431, so it is not worth the memory that ten thousand clients could take with it.
 */
export class OversizeMemory {
  /** The maximum size of a block. */
  readonly maxBlockBytes: number
  #bytes = 0

  constructor(maxBlockBytes: number) {
    this.maxBlockBytes = maxBlockBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Returns false if there is not enough left. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_OVERSIZE_BYTES) return false
    this.#bytes += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes
  }
}

/** The memory for large blocks of clients, and that for those of trusted proxies, which clients cannot use up. */
export class OversizeMemories {
  readonly ofClients: OversizeMemory
  readonly ofProxies: OversizeMemory

  constructor(maxHeaderBytes: number) {
    const maxBytes = SLACK * maxHeaderBytes
    this.ofClients = new OversizeMemory(maxBytes)
    this.ofProxies = new OversizeMemory(Math.max(maxBytes, MIN_PROXY_BLOCK_BYTES))
  }
}

/** A header block as it arrives, in one frame or several (RFC 9113 section 4.3). */
export class HeaderBlock {
  /** Bytes that each connection may use without taking from the shared memory. */
  readonly #maxUsualBytes: number
  readonly #memoryOfPeer: () => OversizeMemory
  /** The shared memory, chosen when a block arrives in several frames. */
  #oversizeMemory: OversizeMemory | undefined
  /** Bytes taken from the shared memory. */
  #oversizeBytes = 0
  /** The received bytes, copied into one buffer: a frame of one byte would take a hundred bytes in a buffer of its own. */
  #room = nothing
  #bytes = 0
  /** Whether a block has begun whose last frame has not arrived. */
  isOpen = false
  stream = 0
  endsStream = false

  /** @param memoryOfPeer returns the memory that the peer of the connection shares with others */
  constructor(maxHeaderBytes: number, memoryOfPeer = () => new OversizeMemory(SLACK * maxHeaderBytes)) {
    this.#maxUsualBytes = Math.max(maxHeaderBytes, MAX_FRAME_BYTES)
    this.#memoryOfPeer = memoryOfPeer
  }

  /** Begins with the payload of a HEADERS frame. @throws {ConnectionError} */
  begin(stream: number, flagBits: number, payload: Buffer): void {
    const isPadded = (flagBits & flags.padded) !== 0
    const start = (isPadded ? 1 : 0) + ((flagBits & flags.priority) !== 0 ? PRIORITY_BYTES : 0)
    if (start > payload.length)
      throw new ConnectionError(errorCodes.frameSizeError, 'HEADERS frame too short for its flags')
    const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0)
    if (start > end) throw new ConnectionError(errorCodes.protocolError, 'padding longer than its frame')
    this.isOpen = true
    this.stream = stream
    this.endsStream = (flagBits & flags.endStream) !== 0
    this.#bytes = end - start
    const fragment = payload.subarray(start, end)
    this.#room = (flagBits & flags.endHeaders) === 0 ? copyBytes(fragment) : fragment
  }

  /** @param payload of a CONTINUATION frame @throws {ConnectionError} */
  add(payload: Buffer): void {
    const needed = this.#bytes + payload.length
    const memory = (this.#oversizeMemory ??= this.#memoryOfPeer())
    if (needed > memory.maxBlockBytes)
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'header block too large')
    if (needed > this.#room.length) {
      const max = needed > this.#maxUsualBytes ? memory.maxBlockBytes : this.#maxUsualBytes
      const bytes = Math.min(Math.max(needed, 2 * this.#room.length), max)
      this.#takeOversize(memory, Math.max(0, bytes - this.#maxUsualBytes))
      const room = Buffer.allocUnsafeSlow(bytes)
      this.#room.copy(room, 0, 0, this.#bytes)
      this.#room = room
    }
    payload.copy(this.#room, this.#bytes)
    this.#bytes = needed
  }

  /** Takes out the complete block. */
  take(): Buffer {
    const whole = this.#room.subarray(0, this.#bytes)
    this.isOpen = false
    this.drop()
    return whole
  }

  /** Frees the memory of the block, for example because its connection has closed. */
  drop(): void {
    this.#room = nothing
    this.#oversizeMemory?.giveBack(this.#oversizeBytes)
    this.#oversizeMemory = undefined
    this.#oversizeBytes = 0
  }

  /** @param bytes how many bytes the block has beyond `maxUsualBytes` from now on @throws {ConnectionError} */
  #takeOversize(memory: OversizeMemory, bytes: number): void {
    if (!memory.take(bytes - this.#oversizeBytes))
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many oversized header blocks')
    this.#oversizeBytes = bytes
  }
}
