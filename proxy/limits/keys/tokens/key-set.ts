import type { Log } from '../../../../shared/log.ts'
import { endedWithin } from '../../../../shared/within.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'

/** The text of a key set, kept current beside the requests. */
export type KeySetSource = {
  /** The last key set that could be had; undefined before the first. */
  current(): string | undefined
  /** A token names a key that the set does not have: it is loaded again, unless that was done a moment ago. */
  keyMissing(): void
  /** Resolves when the first attempt to load it is over, after `limitMs` at the latest. */
  ready(limitMs: number): Promise<void>
  close(): void
}

const REFRESH_MS = 300_000
/** After a failure, and then twice as long after each further one: at a start the issuer may be only starting too. */
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 10_000
/** A client can name unknown keys as often as it likes. */
const MISSING_KEY_MS = 10_000

/**
 * Loads a key set, and loads it again every five minutes, sooner after a failure, and when a key is missing. What
 * was loaded last stays in use while loading fails.
 *
 * @param options.load rejects if it cannot get a key set
 */
export function keepKeySet(options: {
  readonly load: () => Promise<string>
  readonly telemetry: Pick<Telemetry, 'keySetLoaded'>
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly now: () => number
}): KeySetSource {
  const { load, telemetry, log, now } = options
  let text: string | undefined
  let loading: Promise<void> | undefined
  let startedAtMs = -Infinity
  /** In a row. */
  let failures = 0
  let timer: NodeJS.Timeout | undefined

  async function loadOnce(): Promise<void> {
    startedAtMs = now()
    try {
      text = await load()
      telemetry.keySetLoaded('loaded')
      if (failures > 0) log.info('key set for tokens available again')
      failures = 0
    } catch (error) {
      telemetry.keySetLoaded('failed')
      const reason = error instanceof Error ? error.message : String(error)
      // Once for each outage.
      if (failures === 0) log.warn({ reason }, 'cannot load the key set for tokens')
      failures++
    }
  }

  let isClosed = false

  function refresh(): Promise<void> {
    clearTimeout(timer)
    loading ??= loadOnce().finally(() => {
      loading = undefined
      if (isClosed) return
      const retryMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)
      timer = setTimeout(() => void refresh(), failures > 0 ? retryMs : REFRESH_MS)
      timer.unref()
    })
    return loading
  }

  const first = refresh()
  return {
    current: () => text,
    keyMissing() {
      if (!isClosed && now() - startedAtMs >= MISSING_KEY_MS) void refresh()
    },
    ready: (limitMs) => endedWithin(limitMs, first),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
