import { readFile } from 'node:fs/promises'
import type { Log } from '../../../../shared/log.ts'
import { withoutMark } from '../../../../shared/settings/byte-order-mark.ts'
import { endedWithin } from '../../../../shared/within.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { readDecision, type Decision } from './decision.ts'
import type { DecisionChange } from './decision-table.ts'
import { StreamReader, type StreamList } from './stream-reader.ts'

/** `crowdsec` of the settings. */
export type CrowdsecSettings = {
  /** Of the local API, without `/v1`. */
  readonly url: string
  /** With the key of a bouncer. Read for each poll, so that it can be replaced. */
  readonly keyFile: string
  readonly everyMs: number
}

export type DecisionKeeper = {
  /** Resolves when the first poll is over, after `limitMs` at the latest. */
  ready(limitMs: number): Promise<void>
  close(): void
}

/** A poll for all decisions takes seconds. */
const TIMEOUT_MS = 60_000
/** Then all decisions are read anew, so that no difference that was lost stays lost. */
const SYNC_EVERY_MS = 3_600_000
const DECISIONS_IN_CHANGE = 500

/**
 * Polls the stream of a local API of CrowdSec: first for all decisions, then for the differences. After a failure it asks for all again, as
 * an answer that did not arrive is not sent again. Meanwhile the decisions stay, each until it ends.
 *
 * @param options.apply takes the changes in order
 * @param options.userAgent `NAME/VERSION`, which CrowdSec shows
 */
export function keepDecisions(
  settings: CrowdsecSettings,
  options: {
    readonly apply: (change: DecisionChange) => void
    readonly telemetry: Pick<Telemetry, 'crowdsecPolled'>
    readonly userAgent: string
    readonly log: Pick<Log, 'info' | 'warn'>
    /** Monotonic milliseconds. */
    readonly now: () => number
  },
): DecisionKeeper {
  const { url, keyFile, everyMs } = settings
  const { apply, telemetry, userAgent, log, now } = options
  const closing = new AbortController()
  let isInSync = false
  let syncedMs = -Infinity
  let failure: string | undefined
  let timer: NodeJS.Timeout | undefined

  async function ask(
    startup: boolean,
    onDecision: (list: StreamList, decision: Decision) => void,
  ): Promise<void> {
    const key = withoutMark(await readFile(keyFile, 'utf8')).trim()
    const response = await fetch(`${url}/v1/decisions/stream?startup=${startup}&scopes=ip,range`, {
      redirect: 'error',
      signal: AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: { 'x-api-key': key, 'user-agent': userAgent, accept: 'application/json' },
    })
    if (response.status === 401 || response.status === 403)
      throw new Error(`the key of ${keyFile} is refused (${response.status})`)
    if (!response.ok) throw new Error(`the answer is ${response.status}`)
    const reader = new StreamReader((list, sent) => {
      const decision = readDecision(sent)
      if (decision) onDecision(list, decision)
    })
    for await (const piece of (response.body ?? new Blob([]).stream()).pipeThrough(new TextDecoderStream()))
      reader.write(piece)
    reader.end()
  }

  async function readAll(): Promise<void> {
    apply({ crowdsec: 'begin' })
    let decisions: Decision[] = []
    await ask(true, (list, decision) => {
      // They have ended: with all others known, there is nothing to delete.
      if (list === 'deleted') return
      decisions.push(decision)
      if (decisions.length < DECISIONS_IN_CHANGE) return
      apply({ crowdsec: 'set', decisions })
      decisions = []
    })
    apply({ crowdsec: 'set', decisions })
    apply({ crowdsec: 'end' })
  }

  async function readDifference(): Promise<void> {
    const decisions: Decision[] = []
    const values: string[] = []
    await ask(false, (list, decision) => {
      if (list === 'new') decisions.push(decision)
      else values.push(decision.value)
    })
    // The same address may be in both: one decision has ended, and another begun.
    if (values.length > 0) apply({ crowdsec: 'delete', values })
    if (decisions.length > 0) apply({ crowdsec: 'set', decisions })
  }

  async function poll(): Promise<void> {
    const startedMs = now()
    const readsAll = !isInSync || startedMs - syncedMs >= SYNC_EVERY_MS
    try {
      await (readsAll ? readAll() : readDifference())
      if (readsAll) syncedMs = startedMs
      if (!isInSync) log.info({ url }, 'decisions of CrowdSec loaded')
      isInSync = true
      failure = undefined
      telemetry.crowdsecPolled('done')
    } catch (error) {
      if (closing.signal.aborted) return
      isInSync = false
      telemetry.crowdsecPolled('failed')
      const reason = reasonOf(error)
      // Once for each outage.
      if (reason !== failure)
        log.warn(
          { url, reason },
          'cannot read the decisions of CrowdSec; keeping those already loaded until they expire',
        )
      failure = reason
    }
  }

  function pollAgain(): Promise<void> {
    return poll().finally(() => {
      if (!closing.signal.aborted) timer = setTimeout(() => void pollAgain(), everyMs).unref()
    })
  }

  // Not before whoever called this has what it returns.
  const first = Promise.resolve().then(pollAgain)
  return {
    ready: (limitMs) => endedWithin(limitMs, first),
    close() {
      closing.abort()
      clearTimeout(timer)
    },
  }
}

/** Of `fetch`, whose own message says only that it failed. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message || String(error.cause) : error.message
}
