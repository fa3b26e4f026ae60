/**
 * Queues of times that share a bounded amount of memory: each queue is a linked list of chunks of a few times, allocated
 * from a common pool. A queue needs no objects, is never copied and creates no garbage; its memory is that of its times,
 * rounded up to whole chunks.
 *
 * Times are added at the back, in order, and removed at the front. The queues are not suited for random access.
 */
export class TimestampQueues {
  readonly #times: Float64Array
  /** By chunk: the next chunk of the same queue, or of the free list, plus 1. All arrays are used from index 0 up. */
  readonly #nextChunk: Int32Array
  readonly #chunkCount: number
  /** By queue: its first and its last chunk, valid only while it holds times. */
  readonly #firstChunk: Int32Array
  readonly #lastChunk: Int32Array
  /** By queue: the offset in the first chunk at which it begins. */
  readonly #start: Uint8Array
  readonly #counts: Uint32Array
  /** Chunks from here on have never been used. */
  #untouched = 0
  #firstFree = 0
  #chunksInUse = 0

  /** @param capacity maximum number of times, if every chunk is full */
  constructor(queueCount: number, capacity: number) {
    this.#chunkCount = Math.ceil(capacity / CHUNK)
    this.#times = new Float64Array(this.#chunkCount * CHUNK)
    this.#nextChunk = new Int32Array(this.#chunkCount)
    this.#firstChunk = new Int32Array(queueCount)
    this.#lastChunk = new Int32Array(queueCount)
    this.#start = new Uint8Array(queueCount)
    this.#counts = new Uint32Array(queueCount)
  }

  get capacity(): number {
    return this.#chunkCount * CHUNK
  }

  /** Room taken by all queues, in times. */
  get size(): number {
    return this.#chunksInUse * CHUNK
  }

  count(queue: number): number {
    return this.#counts[queue] ?? 0
  }

  /** Returns the time at the front. For this and for `last`, the queue must not be empty. */
  first(queue: number): number {
    return this.#times[(this.#firstChunk[queue] ?? 0) * CHUNK + (this.#start[queue] ?? 0)] ?? 0
  }

  last(queue: number): number {
    const end = (this.#start[queue] ?? 0) + this.count(queue) - 1
    return this.#times[(this.#lastChunk[queue] ?? 0) * CHUNK + (end % CHUNK)] ?? 0
  }

  /** Whether `push` needs a chunk from the common pool, and no chunk is free. */
  isFullFor(queue: number): boolean {
    return this.#needsChunk(queue) && this.#firstFree === 0 && this.#untouched === this.#chunkCount
  }

  /** Adds a time at the back of a queue; `isFullFor` must be false. */
  push(queue: number, time: number): void {
    if (this.#needsChunk(queue)) {
      const chunk = this.#takeChunk()
      if (this.count(queue) === 0) this.#firstChunk[queue] = chunk
      else this.#nextChunk[this.#lastChunk[queue] ?? 0] = chunk + 1
      this.#lastChunk[queue] = chunk
    }
    const end = (this.#start[queue] ?? 0) + this.count(queue)
    this.#times[(this.#lastChunk[queue] ?? 0) * CHUNK + (end % CHUNK)] = time
    this.#counts[queue] = this.count(queue) + 1
  }

  /** Removes the time at the front of a queue, which must not be empty. */
  shift(queue: number): void {
    const count = this.count(queue) - 1
    const start = (this.#start[queue] ?? 0) + 1
    this.#counts[queue] = count
    this.#start[queue] = start
    if (start < CHUNK && count > 0) return
    const chunk = this.#firstChunk[queue] ?? 0
    this.#firstChunk[queue] = (this.#nextChunk[chunk] ?? 0) - 1
    this.#start[queue] = 0
    this.#freeChunk(chunk)
  }

  clear(queue: number): void {
    while (this.count(queue) > 0) this.shift(queue)
  }

  /** Returns the places of the times equal to `time`, from `from` (inclusive) to `to` (exclusive). The times must be in order. */
  placesOf(queue: number, time: number): { readonly from: number; readonly to: number } {
    const count = this.count(queue)
    const start = this.#start[queue] ?? 0
    let chunk = this.#firstChunk[queue] ?? 0
    let from = 0
    let to = 0
    for (; to < count; to++) {
      const at = (start + to) % CHUNK
      if (to > 0 && at === 0) chunk = (this.#nextChunk[chunk] ?? 0) - 1
      const here = this.#times[chunk * CHUNK + at] ?? 0
      if (here > time) break
      if (here < time) from = to + 1
    }
    return { from, to }
  }

  /** Removes the times at these places, which must not be all places. Later times move up. */
  removeRange(queue: number, from: number, to: number): void {
    const count = this.count(queue)
    const start = this.#start[queue] ?? 0
    const last = this.#lastChunk[queue] ?? 0
    let readChunk = this.#firstChunk[queue] ?? 0
    let writeChunk = readChunk
    let kept = 0
    for (let place = 0; place < count; place++) {
      const readAt = (start + place) % CHUNK
      if (place > 0 && readAt === 0) readChunk = (this.#nextChunk[readChunk] ?? 0) - 1
      if (place >= from && place < to) continue
      const writeAt = (start + kept) % CHUNK
      if (kept > 0 && writeAt === 0) writeChunk = (this.#nextChunk[writeChunk] ?? 0) - 1
      this.#times[writeChunk * CHUNK + writeAt] = this.#times[readChunk * CHUNK + readAt] ?? 0
      kept++
    }
    this.#counts[queue] = kept
    this.#lastChunk[queue] = writeChunk
    const freed = Math.ceil((start + count) / CHUNK) - Math.ceil((start + kept) / CHUNK)
    if (freed === 0) return
    this.#chunksInUse -= freed
    this.#nextChunk[last] = this.#firstFree
    this.#firstFree = this.#nextChunk[writeChunk] ?? 0
  }

  /** Returns the times at the places from `from` (inclusive) to `to` (exclusive), counted from the front. */
  slice(queue: number, from: number, to: number): number[] {
    const times: number[] = []
    const start = this.#start[queue] ?? 0
    let chunk = this.#firstChunk[queue] ?? 0
    for (let place = 0; place < to; place++) {
      const at = (start + place) % CHUNK
      if (place > 0 && at === 0) chunk = (this.#nextChunk[chunk] ?? 0) - 1
      if (place >= from) times.push(this.#times[chunk * CHUNK + at] ?? 0)
    }
    return times
  }

  #needsChunk(queue: number): boolean {
    const count = this.count(queue)
    return count === 0 || ((this.#start[queue] ?? 0) + count) % CHUNK === 0
  }

  #takeChunk(): number {
    this.#chunksInUse += 1
    if (this.#firstFree === 0) return this.#untouched++
    const chunk = this.#firstFree - 1
    this.#firstFree = this.#nextChunk[chunk] ?? 0
    return chunk
  }

  #freeChunk(chunk: number): void {
    this.#chunksInUse -= 1
    this.#nextChunk[chunk] = this.#firstFree
    this.#firstFree = chunk + 1
  }
}

/** The number of times in a chunk. Larger chunks waste space on the many clients with a request or two; smaller ones need more links. */
const CHUNK = 4
