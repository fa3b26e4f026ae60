import { writeSync } from 'node:fs'

export type LineWriter = {
  /** Writes a line, which includes its line feed. Never throws and never blocks. */
  write(line: string): void
}

/** Maximum bytes buffered while standard output is not read. Further lines are dropped. */
const WAITING_MAX_BYTES = 8 * 1024 * 1024
/** A pipe takes this much whole or not at all (PIPE_BUF), so that the lines of two workers never get mixed. */
const CHUNK_MAX_BYTES = 4096
const RETRY_MS = 10
/** How long the exit of the process may wait for a slow reader. */
const EXIT_WAIT_MS = 500

/**
 * Writes lines to standard output, in order, those of one turn of the event loop together. If a pipe or socket is full
 * because its reader is slow or hangs, lines are buffered, up to a bound, and the caller is not blocked. Lines still buffered
 * when the process exits are written then. If the reader has exited, lines are discarded.
 *
 * pino's own destination cannot do all of this: synchronous, a reader that hangs blocks the process; asynchronous, the last
 * lines are out of order, lines of two workers get mixed, and at exit it waits in an endless loop for a reader that has exited
 * (`flushSync` of sonic-boom 4).
 *
 * @param onDropped called with the number of lines that were lost, once lines can be written again
 */
export function createStdoutWriter(onDropped: (lines: number) => void): LineWriter {
  // Accessing `process.stdout` makes a pipe or socket non-blocking, so that writing to a full one fails instead of blocking.
  const { fd } = process.stdout
  /** Whole lines, except that the first chunk may be the rest of one that was written in part. */
  const chunks: Buffer[] = []
  let lastLines = ''
  let lastBytes = 0
  let waitingBytes = 0
  let dropped = 0
  let isScheduled = false
  let isGone = false
  let isEndAwaited = false

  const closeChunk = (): void => {
    if (lastBytes > 0) chunks.push(Buffer.from(lastLines))
    lastLines = ''
    lastBytes = 0
  }

  /** Writes as much as possible without blocking. */
  const advance = (): void => {
    closeChunk()
    let wholeChunks = 0
    for (const chunk of chunks) {
      const count = tryWrite(fd, chunk)
      if (count === 'gone') {
        isGone = true
        chunks.length = 0
        return
      }
      waitingBytes -= count
      if (count < chunk.length) {
        chunks[wholeChunks] = chunk.subarray(count)
        break
      }
      wholeChunks++
    }
    chunks.splice(0, wholeChunks)
  }

  const advanceUntilEmpty = (): void => {
    advance()
    if (chunks.length > 0) {
      setTimeout(advanceUntilEmpty, RETRY_MS).unref()
      return
    }
    isScheduled = false
    if (dropped > 0) reportDropped()
  }

  const reportDropped = (): void => {
    const lines = dropped
    dropped = 0
    onDropped(lines)
  }

  const finish = (): void => {
    const clock = new Int32Array(new SharedArrayBuffer(4))
    for (let waitedMs = 0; waitedMs < EXIT_WAIT_MS; waitedMs += RETRY_MS) {
      advance()
      if (chunks.length === 0) return
      Atomics.wait(clock, 0, 0, RETRY_MS)
    }
  }

  return {
    write(line) {
      if (isGone) return
      const bytes = Buffer.byteLength(line)
      if (waitingBytes + bytes > WAITING_MAX_BYTES) {
        dropped++
        return
      }
      if (lastBytes + bytes > CHUNK_MAX_BYTES) closeChunk()
      lastLines += line
      lastBytes += bytes
      waitingBytes += bytes

      if (isScheduled) return
      isScheduled = true
      setImmediate(advanceUntilEmpty)
      if (isEndAwaited) return
      isEndAwaited = true
      process.once('exit', finish)
    },
  }
}

/** Number of bytes written; 0 if there is no room now, as in a full pipe or on a full disk. */
function tryWrite(fd: number, chunk: Buffer): number | 'gone' {
  try {
    return writeSync(fd, chunk)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPIPE' ? 'gone' : 0
  }
}
