/** Requests over time, and how many of them were refused. */
export type Series = { readonly requests: readonly number[]; readonly refused: readonly number[] }

const MAX_BUCKETS = 240
const NARROWEST_MS = 1_000

/**
 * Counts requests in buckets of equal width. Because the length of a log is known only at its end, each pair of buckets is merged when all
 * buckets are used. A log of four minutes or more ends up with 120 to 240 buckets.
 */
export class TimeSeries {
  readonly #requests: readonly Uint32Array[]
  readonly #refused: readonly Uint32Array[]
  #fromMs = NaN
  #widthMs = NARROWEST_MS
  #used = 0

  /** @param lines number of series that are counted separately */
  constructor(lines: number) {
    this.#requests = Array.from({ length: lines }, () => new Uint32Array(MAX_BUCKETS))
    this.#refused = Array.from({ length: lines }, () => new Uint32Array(MAX_BUCKETS))
  }

  /** The time when the first request began, rounded down to a second; undefined if nothing was counted. */
  get fromMs(): number | undefined {
    return Number.isNaN(this.#fromMs) ? undefined : this.#fromMs
  }

  get widthMs(): number {
    return this.#widthMs
  }

  /** @param nowMs the time of the request, not before the first one */
  add(line: number, nowMs: number, isRefused: boolean): void {
    if (Number.isNaN(this.#fromMs)) this.#fromMs = Math.floor(nowMs / NARROWEST_MS) * NARROWEST_MS
    while (nowMs - this.#fromMs >= this.#widthMs * MAX_BUCKETS) this.#widen()
    const bucket = Math.floor((nowMs - this.#fromMs) / this.#widthMs)
    this.#used = Math.max(this.#used, bucket + 1)
    increment(this.#requests[line], bucket)
    if (isRefused) increment(this.#refused[line], bucket)
  }

  read(line: number): Series {
    const used = (counts: Uint32Array | undefined): number[] => [...(counts?.subarray(0, this.#used) ?? [])]
    return { requests: used(this.#requests[line]), refused: used(this.#refused[line]) }
  }

  #widen(): void {
    for (const counts of [...this.#requests, ...this.#refused]) {
      for (let at = 0; at < MAX_BUCKETS; at++)
        counts[at] = at < MAX_BUCKETS / 2 ? (counts[2 * at] ?? 0) + (counts[2 * at + 1] ?? 0) : 0
    }
    this.#widthMs *= 2
    this.#used = Math.ceil(this.#used / 2)
  }
}

function increment(counts: Uint32Array | undefined, at: number): void {
  if (counts) counts[at] = (counts[at] ?? 0) + 1
}
