/** An object with output to flush at the end of a turn of the event loop. */
export type Flushable = {
  /** Writes the pending output. */
  flush(): void
}

/** An object that buffers input until the end of a turn. */
export type Reader = {
  /** Reads the buffered input. */
  readBuffered(): void
}

/** Larger pieces are read at once, because usually more bytes follow in the same turn and would have to be joined with them. */
export const MAX_BUFFERED_BYTES = 8 * 1024

/** When this many connections wait, they are read or written before the end of the turn, so that the first one does not wait long. */
const MAX_AT_ONCE = 16

let readers: Reader[] = []
let single: Flushable[] = []
let joined: Flushable[] = []
let isReading = false
let isScheduled = false

/**
 * Reads the received bytes at the end of this turn of the event loop, before anything is written. If each request were read, decided and
 * forwarded between two system calls, the processor's caches would have to be filled again after each call.
 */
export function readAtEndOfTurn(reader: Reader): void {
  if (readers.push(reader) < MAX_AT_ONCE) schedule()
  else readAndWrite()
}

/**
 * Writes at the end of the turn, when all input has been read. For connections that have a single piece to write. A write wakes up the
 * receiving process. If reads came between the writes, that process would fall asleep after each write and be woken up again, which costs
 * more than the rest of the write.
 */
export function flushAtEndOfTurn(flushable: Flushable): void {
  const count = single.push(flushable)
  // Output written during these reads is flushed right after them.
  if (isReading) return
  if (count < MAX_AT_ONCE) schedule()
  else writeSingle()
}

/** Does the same as `flushAtEndOfTurn`, but never before the end of the turn. For connections that join the bytes of one turn. */
export function joinAtEndOfTurn(flushable: Flushable): void {
  joined.push(flushable)
  schedule()
}

function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(endTurn)
}

function endTurn(): void {
  isScheduled = false
  readAndWrite()
  const flushables = joined
  joined = []
  forEach(flushables, write)
}

/** Reads all buffered input, and flushes: for callers that must not miss input before the end of the turn. */
export function readAndWrite(): void {
  const reading = readers
  readers = []
  isReading = true
  forEach(reading, read)
  isReading = false
  writeSingle()
}

function writeSingle(): void {
  const flushables = single
  single = []
  forEach(flushables, write)
}

function read(reader: Reader): void {
  reader.readBuffered()
}

function write(flushable: Flushable): void {
  flushable.flush()
}

/**
 * Runs the step for each item. An exception becomes an uncaught exception, as in a separate callback, and does not affect the other items.
 */
function forEach<Item>(items: readonly Item[], step: (item: Item) => void): void {
  for (const item of items) {
    try {
      step(item)
    } catch (error) {
      process.nextTick(() => {
        throw error
      })
    }
  }
}
