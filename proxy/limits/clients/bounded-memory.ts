import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Maximum number of clients. The least recently counted client is evicted. */
const MAX_CLIENTS = 10_000

type Count = { points: number; readonly endsAtMs: number }

/**
 * Counts in this process's memory with the interface of the library's limiters, so that it can stand in for Redis. The library's own memory
 * limiter is unbounded, sets a timer for each client, and uses the wall clock.
 */
export class BoundedMemory extends RateLimiterMemory {
  readonly #now: () => number
  /** The counts, the least recently used first. */
  readonly #counts = new Map<string, Count>()

  /**
   * @param options.duration how long points count, in seconds from the first point
   * @param now milliseconds of a monotonic clock
   */
  constructor(options: { readonly points: number; readonly duration: number }, now: () => number) {
    super(options)
    this.#now = now
  }

  /** @param options.customDuration seconds, in place of the usual duration */
  override async consume(
    key: string,
    points = 1,
    options: { readonly customDuration?: number } = {},
  ): Promise<RateLimiterRes> {
    const counted = await this.penalty(key, points, options)
    // The rejection value of the library's limiters.
    // oxlint-disable-next-line typescript/only-throw-error
    if (counted.consumedPoints > this.points) throw counted
    return counted
  }

  override penalty(
    key: string,
    points = 1,
    { customDuration = this.duration }: { readonly customDuration?: number } = {},
  ): Promise<RateLimiterRes> {
    const known = this.#find(key)
    if (!known) return this.set(key, points, customDuration)
    known.points += points
    this.#keep(key, known)
    return Promise.resolve(this.#resultOf(known))
  }

  override set(key: string, points: number, seconds: number): Promise<RateLimiterRes> {
    const count = { points, endsAtMs: this.#now() + seconds * 1000 }
    this.#keep(key, count)
    return Promise.resolve(this.#resultOf(count))
  }

  override block(key: string, seconds: number): Promise<RateLimiterRes> {
    return this.set(key, this.points + 1, seconds)
  }

  override get(key: string): Promise<RateLimiterRes | null> {
    const known = this.#find(key)
    return Promise.resolve(known ? this.#resultOf(known) : null)
  }

  override delete(key: string): Promise<boolean> {
    const isThere = this.#find(key) !== undefined
    this.#counts.delete(key)
    return Promise.resolve(isThere)
  }

  #find(key: string): Count | undefined {
    const known = this.#counts.get(key)
    return known && known.endsAtMs > this.#now() ? known : undefined
  }

  /** Moves the count to the end. Removes up to two of the oldest counts: those that have ended, and any while there are too many. */
  #keep(key: string, count: Count): void {
    this.#counts.delete(key)
    this.#counts.set(key, count)
    let looked = 0
    for (const [oldest, { endsAtMs }] of this.#counts) {
      if (++looked > 2 || (endsAtMs > this.#now() && this.#counts.size <= MAX_CLIENTS)) return
      this.#counts.delete(oldest)
    }
  }

  #resultOf({ points, endsAtMs }: Count): RateLimiterRes {
    return new RateLimiterRes(Math.max(0, this.points - points), endsAtMs - this.#now(), points, false)
  }
}
