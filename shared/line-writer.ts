import { writeSync } from 'node:fs'

/** Maximum bytes buffered while standard output is not read. Further lines are dropped. */
const WAITING_MAX_BYTES = 8 * 1024 * 1024
/** Writes to a pipe of up to this size are atomic (PIPE_BUF), so that the lines of two workers never get mixed. */
const CHUNK_MAX_BYTES = 4096
const RETRY_MS = 10
/** How long the exit of the process may wait for a slow reader. */
const EXIT_WAIT_MS = 500

/**
 * Writes lines to standard output in order, and the lines of one turn of the event loop together. If a pipe or socket is full because its
 * reader is slow or hangs, lines are buffered, up to a bound, and the caller is not blocked. Lines still buffered when the process exits
 * are written then. If the reader has exited, lines are discarded.
 *
 * pino's own destination cannot do all of this. If it is synchronous, a reader that hangs blocks the process. If it is asynchronous, the
 * last lines are out of order, lines of two workers get mixed, and at exit it waits in an endless loop for a reader that has exited
 * (`flushSync` of sonic-boom 4).
 */
export class StdoutWriter {
  // Accessing `process.stdout` makes a pipe or socket non-blocking, so that writing to a full one fails instead of blocking.
  readonly #fd = process.stdout.fd
  readonly #onDropped: (lines: number) => void
  /** Whole lines, except that the first chunk may be the rest of a line that was partly written. */
  readonly #chunks: Buffer[] = []
  #lastLines = ''
  #lastBytes = 0
  #waitingBytes = 0
  #dropped = 0
  #isScheduled = false
  #isGone = false
  #isEndAwaited = false

  /** @param onDropped called with the number of lines that were lost, once lines can be written again */
  constructor(onDropped: (lines: number) => void) {
    this.#onDropped = onDropped
  }

  /** Writes a line, which includes its line feed. Never throws and never blocks. */
  write(line: string): void {
    if (this.#isGone) return
    const bytes = Buffer.byteLength(line)
    if (this.#waitingBytes + bytes > WAITING_MAX_BYTES) {
      this.#dropped++
      return
    }
    if (this.#lastBytes + bytes > CHUNK_MAX_BYTES) this.#closeChunk()
    this.#lastLines += line
    this.#lastBytes += bytes
    this.#waitingBytes += bytes

    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#advanceUntilEmpty)
    if (this.#isEndAwaited) return
    this.#isEndAwaited = true
    process.once('exit', () => this.#finish())
  }

  #closeChunk(): void {
    if (this.#lastBytes > 0) this.#chunks.push(Buffer.from(this.#lastLines))
    this.#lastLines = ''
    this.#lastBytes = 0
  }

  readonly #advanceUntilEmpty = (): void => {
    this.#advance()
    if (this.#chunks.length > 0) {
      setTimeout(this.#advanceUntilEmpty, RETRY_MS).unref()
      return
    }
    this.#isScheduled = false
    if (this.#dropped > 0) this.#reportDropped()
  }

  /** Writes as much as possible without blocking. */
  #advance(): void {
    this.#closeChunk()
    let wholeChunks = 0
    for (const chunk of this.#chunks) {
      const count = tryWrite(this.#fd, chunk)
      if (count === 'gone') {
        this.#isGone = true
        this.#chunks.length = 0
        return
      }
      this.#waitingBytes -= count
      if (count < chunk.length) {
        this.#chunks[wholeChunks] = chunk.subarray(count)
        break
      }
      wholeChunks++
    }
    this.#chunks.splice(0, wholeChunks)
  }

  #reportDropped(): void {
    const lines = this.#dropped
    this.#dropped = 0
    this.#onDropped(lines)
  }

  /** Writes the remaining lines when the process exits. Waits a moment for a slow reader. */
  #finish(): void {
    const clock = new Int32Array(new SharedArrayBuffer(4))
    for (let waitedMs = 0; waitedMs < EXIT_WAIT_MS; waitedMs += RETRY_MS) {
      this.#advance()
      if (this.#chunks.length === 0) return
      Atomics.wait(clock, 0, 0, RETRY_MS)
    }
  }
}

/** Returns the number of bytes written: 0 if nothing can be written now, for example to a full pipe or a full disk. */
function tryWrite(fd: number, chunk: Buffer): number | 'gone' {
  try {
    return writeSync(fd, chunk)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPIPE' ? 'gone' : 0
  }
}
