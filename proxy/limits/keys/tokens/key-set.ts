import { errorText } from '../../../../shared/error-text.ts'
import type { Log } from '../../../../shared/log.ts'
import { endedWithin } from '../../../../shared/within.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { findUntriedKeys } from './check-costs.ts'

const REFRESH_MS = 300_000
/** Milliseconds before the first retry, doubled after each further failure. Short, because the issuer may start at the same time. */
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 10_000
/** Minimum milliseconds between loads for unknown keys, because clients can name unknown keys at any rate. */
const MISSING_KEY_MS = 10_000

/**
 * Keeps a key set current in the background, from construction until `close`: loads it again every five minutes, sooner after a failure,
 * and when a key is missing. While loading fails, the last key set stays in use.
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

  /** The last text that was loaded; undefined until the first load has succeeded. */
  current(): string | undefined {
    return this.#text
  }

  /** Call it if a token names a key that the set lacks. Loads the set again, unless the last load began less than ten seconds ago. */
  keyMissing(): void {
    if (!this.#isClosed && this.#now() - this.#startedAtMs >= MISSING_KEY_MS) void this.#refresh()
  }

  /** Resolves when the first attempt to load the set has ended, after `limitMs` at the latest. */
  ready(limitMs: number): Promise<void> {
    return endedWithin(limitMs, this.#firstAttempt)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Loads the set now, or waits for the attempt in progress. Never rejects. */
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
      // Logged once per version of the set.
      const untried = text === this.#text ? [] : findUntriedKeys(text)
      for (const reason of untried)
        this.#log.warn({ reason }, 'ignoring a key of the key set (JWKS) for tokens')
      this.#text = text
      this.#telemetry.keySetLoaded('loaded')
      if (this.#failures > 0) this.#log.info('key set (JWKS) for tokens available again')
      this.#failures = 0
    } catch (error) {
      this.#telemetry.keySetLoaded('failed')
      const reason = errorText(error)
      // Logged once per outage.
      if (this.#failures === 0) this.#log.warn({ reason }, 'cannot load the key set (JWKS) for tokens')
      this.#failures++
    }
  }
}
