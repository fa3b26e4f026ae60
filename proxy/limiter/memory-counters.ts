import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Policy } from '../policy.ts'
import type { CounterPool } from './counter-pool.ts'
import { NONE } from './key-index.ts'

/**
 * One policy's counters in this process: the library's `RateLimiterMemory`, whose keys, points, `get`, `set`, `delete`
 * and `penalty` are kept, over bounded storage. Its own storage has no bound and a timer for each key; see
 * docs/decisions/counting.md.
 */
export class MemoryCounters extends RateLimiterMemory {
  readonly policy: Policy
  readonly table: number
  /** The library's seam: all that its methods do, they do through this. */
  readonly _memoryStorage: PooledStorage

  /**
   * @param table the number of this policy's table in the pool
   * @param now milliseconds of a monotonic clock
   */
  constructor(policy: Policy, table: number, pool: CounterPool, now: () => number) {
    super({ points: policy.quota, duration: policy.windowMs / 1000, keyPrefix: '' })
    this.policy = policy
    this.table = table
    this._memoryStorage = new PooledStorage(pool, table, now)
  }
}

/** What `RateLimiterMemory` asks of its storage, in its units: durations in seconds, kept to the millisecond. */
class PooledStorage {
  readonly #pool: CounterPool
  readonly #table: number
  readonly #now: () => number

  constructor(pool: CounterPool, table: number, now: () => number) {
    this.#pool = pool
    this.#table = table
    this.#now = now
  }

  incrby(key: string, value: number, durationSec: number): RateLimiterRes {
    const nowMs = this.#now()
    const slot = this.#pool.find(this.#table, key, nowMs)
    if (slot === NONE) return this.set(key, value, durationSec)
    this.#pool.add(slot, value)
    return this.#read(slot, nowMs, false)
  }

  set(key: string, value: number, durationSec: number): RateLimiterRes {
    const nowMs = this.#now()
    const slot = this.#pool.begin(this.#table, key, Math.round(durationSec * 1000), nowMs)
    this.#pool.add(slot, value)
    return this.#read(slot, nowMs, true)
  }

  get(key: string): RateLimiterRes | null {
    const nowMs = this.#now()
    const slot = this.#pool.find(this.#table, key, nowMs)
    return slot === NONE ? null : this.#read(slot, nowMs, false)
  }

  delete(key: string): boolean {
    return this.#pool.forget(this.#table, key)
  }

  #read(slot: number, nowMs: number, isFirst: boolean): RateLimiterRes {
    return new RateLimiterRes(0, this.#pool.endsAtMs(slot) - nowMs, this.#pool.count(slot), isFirst)
  }
}
