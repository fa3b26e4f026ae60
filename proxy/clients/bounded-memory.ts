import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'

/** Clients that are counted at once. Beyond that the one that was counted longest ago is forgotten. */
const MOST_CLIENTS = 10_000

/** What a timer can wait for, in seconds. */
export const LONGEST_TIMER_S = 2 ** 31 / 1000 - 1

/** Counts in the memory of this process. Those of the library have no bound. */
export class BoundedMemory extends RateLimiterMemory {
  /** In the order of their last uses. */
  readonly #clients = new Set<string>()

  override async consume(key: string): Promise<RateLimiterRes> {
    await this.#remember(key)
    return super.consume(key)
  }

  override async penalty(key: string): Promise<RateLimiterRes> {
    await this.#remember(key)
    return super.penalty(key)
  }

  override async set(key: string, points: number, seconds: number): Promise<RateLimiterRes> {
    await this.#remember(key)
    return super.set(key, points, Math.min(seconds, LONGEST_TIMER_S))
  }

  override async block(key: string, seconds: number): Promise<RateLimiterRes> {
    await this.#remember(key)
    return super.block(key, seconds)
  }

  async #remember(key: string): Promise<void> {
    this.#clients.delete(key)
    this.#clients.add(key)
    if (this.#clients.size <= MOST_CLIENTS) return
    const [oldest] = this.#clients
    if (oldest === undefined) return
    this.#clients.delete(oldest)
    await this.delete(oldest)
  }
}
