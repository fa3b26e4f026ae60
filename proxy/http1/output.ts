import type { Socket } from 'node:net'

/** What is shorter is copied into the text of a write: one write of one text costs the system less than one of several pieces. */
const MOST_COPIED = 8 * 1024
const MOST_TEXT = 32 * 1024

/** What is written on a connection: what comes in one turn of the event loop goes out in one write, where it can. */
export class Output {
  readonly #socket: Socket
  /** One character a byte. */
  #text = ''
  #isCorked = false
  #isScheduled = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Bytes that the client has not been sent. */
  get waitingBytes(): number {
    return this.#text.length + this.#socket.writableLength
  }

  /** Adds text that is to go out with what follows it, or at the next `flush`. */
  hold(text: string): void {
    this.#text += text
  }

  /** Adds text that goes out at the end of this turn. */
  write(text: string): void {
    this.#text += text
    this.#schedule()
  }

  /** Adds bytes, and text behind them. They go out at the end of this turn. */
  writeBytes(bytes: Buffer, behind: string): void {
    if (bytes.length <= MOST_COPIED && this.#text.length <= MOST_TEXT) {
      this.#text += bytes.toString('latin1') + behind
    } else {
      this.#cork()
      this.#writeText()
      this.#socket.write(bytes)
      this.#text = behind
    }
    this.#schedule()
  }

  /** Sends what there is. */
  flush(): void {
    this.#writeText()
    this.#uncork()
  }

  /**
   * Sends what there is, with these bytes and text behind them, as the last of a response.
   *
   * @param onWritten called once, in another turn, when all of it was handed to the system or never will be
   */
  finish(bytes: Buffer | undefined, behind: string, onWritten: () => void): void {
    let isLast = true
    if (bytes && bytes.length > MOST_COPIED) {
      if (this.#text !== '') this.#cork()
      this.#writeText()
      if (behind !== '') this.#cork()
      isLast = behind !== ''
      if (isLast) this.#socket.write(bytes)
      else this.#socket.write(bytes, onWritten)
      this.#text = behind
    } else this.#text += bytes ? bytes.toString('latin1') + behind : behind
    if (isLast) {
      const text = this.#text
      this.#text = ''
      if (text !== '' || this.#socket.writableLength > 0) this.#socket.write(text, 'latin1', onWritten)
      else process.nextTick(onWritten)
    }
    this.#uncork()
  }

  #writeText(): void {
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#socket.write(text, 'latin1')
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

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    process.nextTick(flushScheduled, this)
  }

  /** At the end of a turn. */
  flushScheduled(): void {
    this.#isScheduled = false
    this.flush()
  }
}

function flushScheduled(output: Output): void {
  output.flushScheduled()
}
