import type { Log } from '../../../../shared/log.ts'
import { endedWithin } from '../../../../shared/within.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { findUntriedKeys } from './check-costs.ts'

const REFRESH_MS = 300_000
/** Milliseconds before the first retry; doubled after each further failure. At a start the issuer may be only starting too. */
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 10_000
/** A client can name unknown keys as often as it likes. */
const MISSING_KEY_MS = 10_000

/**
 * A key set that is kept current in the background, from its construction until `close`: loaded again every five minutes, sooner
 * after a failure, and when a key is missing. While loading fails, the last key set stays in use.
 */
export class KeySet {
  readonly #load: () => Promise<string>
  readonly #telemetry: Pick<Telemetry, 'keySetLoaded'>
  readonly #log: Pick<Log, 'info' | 'warn'>
  readonly #now: () => number
  readonly #firstAttempt: Promise<void>
  #text: string | undefined
  #loading: Promise<void> | undefined
  #startedAtMs = -Infinity
  /** Failures in a row. */
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * @param options.load resolves to the text of the key set; rejects if it cannot get one
   * @param options.now milliseconds of a monotonic clock
   */
  constructor(options: {
    readonly load: () => Promise<string>
    readonly telemetry: Pick<Telemetry, 'keySetLoaded'>
    readonly log: Pick<Log, 'info' | 'warn'>
    readonly now: () => number
  }) {
    this.#load = options.load
    this.#telemetry = options.telemetry
    this.#log = options.log
    this.#now = options.now
    this.#firstAttempt = this.#refresh()
  }

  /** The text that was loaded last; undefined before the first. */
  current(): string | undefined {
    return this.#text
  }

  /** A token names a key that the set does not have: it is loaded again, unless that was begun less than ten seconds ago. */
  keyMissing(): void {
    if (!this.#isClosed && this.#now() - this.#startedAtMs >= MISSING_KEY_MS) void this.#refresh()
  }

  /** Resolves when the first attempt to load it is over, after `limitMs` at the latest. */
  ready(limitMs: number): Promise<void> {
    return endedWithin(limitMs, this.#firstAttempt)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Loads it now, or waits for the attempt in progress. Never rejects. */
  #refresh(): Promise<void> {
    clearTimeout(this.#timer)
    this.#loading ??= this.#attempt().finally(() => {
      this.#loading = undefined
      if (!this.#isClosed) this.#timer = setTimeout(() => void this.#refresh(), this.#delayMs()).unref()
    })
    return this.#loading
  }

  /** Milliseconds until the next attempt. */
  #delayMs(): number {
    if (this.#failures === 0) return REFRESH_MS
    return Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), MAX_RETRY_MS)
  }

  async #attempt(): Promise<void> {
    this.#startedAtMs = this.#now()
    try {
      const text = await this.#load()
      // Once for each version of the set.
      const untried = text === this.#text ? [] : findUntriedKeys(text)
      for (const reason of untried)
        this.#log.warn({ reason }, 'ignoring a key of the key set (JWKS) for tokens')
      this.#text = text
      this.#telemetry.keySetLoaded('loaded')
      if (this.#failures > 0) this.#log.info('key set (JWKS) for tokens available again')
      this.#failures = 0
    } catch (error) {
      this.#telemetry.keySetLoaded('failed')
      const reason = error instanceof Error ? error.message : String(error)
      // Once for each outage.
      if (this.#failures === 0) this.#log.warn({ reason }, 'cannot load the key set (JWKS) for tokens')
      this.#failures++
    }
  }
}
