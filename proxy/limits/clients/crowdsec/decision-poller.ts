import { errorText } from '../../../../shared/error-text.ts'
import type { Log } from '../../../../shared/log.ts'
import { endedWithin } from '../../../../shared/within.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import type { Decision } from './decision.ts'
import type { DecisionChange } from './decision-table.ts'
import { readDecisionStream, type CrowdsecSettings } from './local-api.ts'

/** How often all decisions are read again, in case an update was lost. */
const SYNC_EVERY_MS = 3_600_000
const DECISIONS_IN_CHANGE = 500

type PollerOptions = {
  /** Called with each change, in order. */
  readonly apply: (change: DecisionChange) => void
  readonly telemetry: Pick<Telemetry, 'crowdsecPolled'>
  /** `NAME/VERSION`, as displayed by CrowdSec. */
  readonly userAgent: string
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/**
 * Polls the local API of CrowdSec from construction until `close`: first for all decisions, then for differences. After a failed poll it
 * requests all decisions again, because CrowdSec sends no difference twice. Meanwhile each known decision applies until it ends.
 */
export class DecisionPoller {
  readonly #settings: CrowdsecSettings
  readonly #options: PollerOptions
  readonly #closing = new AbortController()
  readonly #firstPoll: Promise<void>
  /** Whether the last poll succeeded, so that differences are enough. */
  #isInSync = false
  /** The start of the last successful poll that read all decisions. */
  #syncedMs = -Infinity
  /** The error of the last poll, if it failed. */
  #failure: string | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(settings: CrowdsecSettings, options: PollerOptions) {
    this.#settings = settings
    this.#options = options
    // `apply` must not be called before the caller has this poller.
    this.#firstPoll = Promise.resolve().then(() => this.#pollAgain())
  }

  /** Resolves when the first poll has ended, after `limitMs` at the latest. */
  ready(limitMs: number): Promise<void> {
    return endedWithin(limitMs, this.#firstPoll)
  }

  close(): void {
    this.#closing.abort()
    clearTimeout(this.#timer)
  }

  /** Polls once, and schedules the next poll. Never rejects. */
  async #pollAgain(): Promise<void> {
    // An exception of the log or the metrics must not end the polling.
    await this.#poll().catch(() => undefined)
    if (this.#closing.signal.aborted) return
    this.#timer = setTimeout(() => void this.#pollAgain(), this.#settings.everyMs).unref()
  }

  async #poll(): Promise<void> {
    const { now, telemetry, log } = this.#options
    const startedMs = now()
    const readsAll = !this.#isInSync || startedMs - this.#syncedMs >= SYNC_EVERY_MS
    try {
      await (readsAll ? this.#readAll() : this.#readDifference())
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#failed(errorText(error))
      return
    }
    if (readsAll) this.#syncedMs = startedMs
    if (!this.#isInSync) log.info({ url: this.#settings.url }, 'CrowdSec decisions loaded')
    this.#isInSync = true
    this.#failure = undefined
    telemetry.crowdsecPolled('done')
  }

  #failed(reason: string): void {
    const { telemetry, log } = this.#options
    this.#isInSync = false
    telemetry.crowdsecPolled('failed')
    // Logged once per outage.
    if (reason !== this.#failure)
      log.warn(
        { url: this.#settings.url, reason },
        'cannot read CrowdSec decisions; keeping those already loaded until they expire',
      )
    this.#failure = reason
  }

  async #readAll(): Promise<void> {
    const { apply, userAgent } = this.#options
    apply({ crowdsec: 'begin' })
    let decisions: Decision[] = []
    const query = { startup: true, userAgent, signal: this.#closing.signal }
    await readDecisionStream(this.#settings, query, (list, decision) => {
      // The complete list replaces all known decisions, so there is nothing to delete.
      if (list === 'deleted') return
      decisions.push(decision)
      if (decisions.length < DECISIONS_IN_CHANGE) return
      apply({ crowdsec: 'set', decisions })
      decisions = []
    })
    apply({ crowdsec: 'set', decisions })
    apply({ crowdsec: 'end' })
  }

  async #readDifference(): Promise<void> {
    const { apply, userAgent } = this.#options
    const decisions: Decision[] = []
    const values: string[] = []
    const query = { startup: false, userAgent, signal: this.#closing.signal }
    await readDecisionStream(this.#settings, query, (list, decision) => {
      if (list === 'new') decisions.push(decision)
      else values.push(decision.value)
    })
    // An address may be in both lists, if one decision has ended and another one has begun.
    if (values.length > 0) apply({ crowdsec: 'delete', values })
    if (decisions.length > 0) apply({ crowdsec: 'set', decisions })
  }
}
