import type { Log } from '../../shared/log.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

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
const RETRY_MS = 10_000
/** A client can name unknown keys as often as it likes. */
const MISSING_KEY_MS = 10_000

/**
 * Loads a key set, and loads it again every five minutes, ten seconds after a failure, and when a key is missing. What
 * was loaded last stays in use while loading fails.
 *
 * @param options.load rejects where there is no key set to be had
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
  let hasFailed = false
  let timer: NodeJS.Timeout | undefined

  async function loadOnce(): Promise<void> {
    startedAtMs = now()
    try {
      text = await load()
      telemetry.keySetLoaded('loaded')
      if (hasFailed) log.info('key set for tokens loaded again')
      hasFailed = false
    } catch (error) {
      telemetry.keySetLoaded('failed')
      const reason = error instanceof Error ? error.message : String(error)
      // Once for each outage.
      if (!hasFailed) log.warn({ reason }, 'key set for tokens could not be loaded')
      hasFailed = true
    }
  }

  function refresh(): Promise<void> {
    clearTimeout(timer)
    loading ??= loadOnce().finally(() => {
      loading = undefined
      timer = setTimeout(() => void refresh(), hasFailed ? RETRY_MS : REFRESH_MS)
      timer.unref()
    })
    return loading
  }

  const first = refresh()
  return {
    current: () => text,
    keyMissing() {
      if (now() - startedAtMs >= MISSING_KEY_MS) void refresh()
    },
    async ready(limitMs) {
      let limit: NodeJS.Timeout | undefined
      const timeout = new Promise<undefined>((resolve) => {
        limit = setTimeout(resolve, limitMs, undefined)
      })
      await Promise.race([first, timeout])
      clearTimeout(limit)
    },
    close: () => clearTimeout(timer),
  }
}
