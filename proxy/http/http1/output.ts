import type { Socket } from 'node:net'
import { flushAtEndOfTurn, type Flushable } from '../message/end-of-turn.ts'

/** Pieces up to this size are copied into the text of a write, because writing one text costs less than writing several pieces. */
const MAX_COPIED_BYTES = 8 * 1024
const MAX_TEXT_BYTES = 32 * 1024

/** The output of a connection: all output of one turn of the event loop goes out in one write, if possible. */
export class Output implements Flushable {
  readonly #socket: Socket
  /** Pending text, one character a byte. */
  #text = ''
  /** Set if the text is the end of a response; called when the operating system has taken it. */
  #onWritten: (() => void) | undefined
  #isCorked = false
  #isScheduled = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Bytes that the operating system has not taken yet. */
  get pendingBytes(): number {
    return this.#text.length + this.#socket.writableLength
  }

  /** Adds text that goes out with the next output, or the next flush. */
  buffer(text: string): void {
    this.#text += text
  }

  /** Adds text that goes out at the end of this turn. */
  write(text: string): void {
    this.#text += text
    this.flushSoon()
  }

  /** Adds bytes, and text after them. They go out at the end of this turn. */
  writeBytes(bytes: Buffer, suffix: string): void {
    if (bytes.length <= MAX_COPIED_BYTES && this.#text.length <= MAX_TEXT_BYTES) {
      this.#text += bytes.toString('latin1') + suffix
    } else {
      this.#cork()
      this.#writeText()
      this.#socket.write(bytes)
      this.#text = suffix
    }
    this.flushSoon()
  }

  /** Schedules a flush of the buffered output at the end of this turn. */
  flushSoon(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    flushAtEndOfTurn(this)
  }

  /** Writes the buffered output now. */
  flush(): void {
    this.#isScheduled = false
    this.#writeText()
    this.#uncork()
  }

  /**
   * Adds these bytes, and text after them, as the end of a response. They go out at the end of this turn.
   *
   * @param onWritten called once, asynchronously, when the operating system has taken all of it, or never will
   */
  finish(bytes: Buffer | undefined, suffix: string, onWritten: () => void): void {
    if (bytes && bytes.length > MAX_COPIED_BYTES) {
      this.#cork()
      this.#writeText()
      this.#socket.write(bytes, suffix === '' ? onWritten : undefined)
      this.#text = suffix
      if (suffix !== '') this.#onWritten = onWritten
    } else {
      this.#text += bytes ? bytes.toString('latin1') + suffix : suffix
      this.#onWritten = onWritten
    }
    this.flushSoon()
  }

  #writeText(): void {
    const text = this.#text
    const onWritten = this.#onWritten
    this.#text = ''
    this.#onWritten = undefined
    if (text === '' && (!onWritten || this.#socket.writableLength === 0)) {
      if (onWritten) process.nextTick(onWritten)
    } else this.#socket.write(text, 'latin1', onWritten)
  }

  #cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    this.#socket.cork()
  }

  #uncork(): void {
    if (!this.#isCorked) return
    this.#isCorked = false
    this.#socket.uncork()
  }
}
