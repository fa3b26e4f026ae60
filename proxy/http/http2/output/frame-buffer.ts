import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { flags, FRAME_HEAD_BYTES, frameTypes, MAX_FRAME_BYTES, writeFrameHead } from '../frames.ts'

/** Up to this many bytes are copied into one buffer for a write. Over TLS, all bytes are, because each buffer would become a record. */
const MAX_JOINED_BYTES = 8 * 1024

/** The body of a response. */
type Body = {
  /** Takes out this many bytes, and appends them to `pieces`. */
  takeBody(bytes: number, pieces: Buffer[]): void
}

const noBytes = Buffer.alloc(0)

/** The frames of one write to a client. */
export class FrameBuffer {
  readonly #socket: Socket
  readonly #isTls: boolean
  #frames: Buffer[] = []
  #bytes = 0

  constructor(socket: Socket) {
    this.#socket = socket
    this.#isTls = socket instanceof TLSSocket
  }

  /** Bytes of the frames. */
  get bytes(): number {
    return this.#bytes
  }

  push(frame: Buffer): void {
    this.#frames.push(frame)
    this.#bytes += frame.length
  }

  /** Adds a DATA frame with `bytes` bytes of a body. */
  pushData(id: number, body: Body, bytes: number, ends: boolean): void {
    const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES)
    writeFrameHead(head, 0, bytes, frameTypes.data, ends ? flags.endStream : 0, id)
    this.push(head)
    body.takeBody(bytes, this.#frames)
    this.#bytes += bytes
  }

  /**
   * Adds a HEADERS frame, followed by CONTINUATION frames if the fields take more than one frame.
   *
   * @param encoded the fields, after `FRAME_HEAD_BYTES` of room for the head of a frame
   */
  pushFields(id: number, encoded: Buffer, ends: boolean): void {
    const length = encoded.length - FRAME_HEAD_BYTES
    const streamFlag = ends ? flags.endStream : 0
    if (length <= MAX_FRAME_BYTES) {
      writeFrameHead(encoded, 0, length, frameTypes.headers, flags.endHeaders | streamFlag, id)
      this.push(encoded)
      return
    }
    for (let at = 0; at < length; at += MAX_FRAME_BYTES) {
      const bytes = Math.min(MAX_FRAME_BYTES, length - at)
      const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES)
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation
      const isLast = at + bytes === length
      writeFrameHead(head, 0, bytes, type, (at === 0 ? streamFlag : 0) | (isLast ? flags.endHeaders : 0), id)
      this.push(head)
      this.push(encoded.subarray(FRAME_HEAD_BYTES + at, FRAME_HEAD_BYTES + at + bytes))
    }
  }

  /** Writes all frames, and clears the buffer. @param onSent called when the operating system has taken all of them, or never will */
  write(onSent: (() => void) | undefined): void {
    const frames = this.#frames
    const bytes = this.#bytes
    this.#frames = []
    this.#bytes = 0
    if (bytes <= MAX_JOINED_BYTES || this.#isTls) {
      this.#socket.write(joined(frames, bytes, this.#socket.writableLength > 0), onSent)
      return
    }
    this.#socket.cork()
    const last = frames.pop() ?? noBytes
    for (const frame of frames) this.#socket.write(frame)
    this.#socket.write(last, onSent)
    this.#socket.uncork()
  }
}

/** @param waits the bytes will be pending, and must not keep other memory alive */
function joined(frames: readonly Buffer[], bytes: number, waits: boolean): Buffer {
  if (frames.length === 1 && !waits) return frames[0] ?? noBytes
  const all = waits ? Buffer.allocUnsafeSlow(bytes) : Buffer.allocUnsafe(bytes)
  let at = 0
  for (const frame of frames) {
    all.set(frame, at)
    at += frame.length
  }
  return all
}
