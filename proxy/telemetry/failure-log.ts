import type { Log } from '../../shared/log.ts'
import { paceLines } from './paced-lines.ts'

/** The failure of a request at the backend; `kind` is one of `FailureKind`. */
type Failure = { readonly kind: string; readonly message: string; readonly cause?: unknown }

/** The settings that decide how long, or how many, where that is why a request failed. */
const settingsOf: Readonly<Partial<Record<string, string>>> = {
  busy: 'UPSTREAM_CONNECTIONS, UPSTREAM_QUEUE, UPSTREAM_CONNECT_TIMEOUT',
  'connect-timeout': 'UPSTREAM_CONNECT_TIMEOUT',
  'idle-timeout': 'UPSTREAM_IDLE_TIMEOUT',
  timeout: 'UPSTREAM_TIMEOUT',
}

/** The lines of a kind; `everyMs`: minimum time between two of them about one backend. */
type Lines = { readonly everyMs: number; readonly level: 'warn' | 'error'; readonly text: string }

const ofMostKinds: Lines = { everyMs: 1_000, level: 'warn', text: 'requests to the backend failed' }
const ofKinds: Readonly<Partial<Record<string, Lines>>> = {
  busy: {
    everyMs: 5_000,
    level: 'warn',
    text: 'requests answered 503: no connection to the backend is free',
  },
  'local-limit': {
    everyMs: 5_000,
    level: 'error',
    text: 'requests answered 503: the gateway cannot open more connections',
  },
}

type LogFailure = (failure: Failure, requestId: string) => void

/**
 * Logs requests that fail at a backend: the first of a kind at once, then lines with the number of further ones and the last one's id, as
 * a client may be able to make all of its requests fail. Those that the shutdown aborts have a line each.
 *
 * @returns the log of the failures of a backend, by its name
 */
export function createFailureLog(log: Log): (upstream: string) => LogFailure {
  /** By name and kind: they outlast a reload of the routes. */
  const pacers = new Map<string, LogFailure>()
  const createPacer = (upstream: string, kind: string): LogFailure => {
    const { everyMs, level, text } = ofKinds[kind] ?? ofMostKinds
    const logPaced = paceLines<readonly [Failure, string]>(everyMs, (requests, [failure, requestId]) => {
      const { message: reason, cause: err } = failure
      log[level]({ upstream, kind, requests, requestId, reason, settings: settingsOf[kind], err }, text)
    })
    return (failure, requestId) => logPaced([failure, requestId])
  }
  return (upstream) => (failure, requestId) => {
    const { kind, message: reason } = failure
    if (kind === 'aborted') return log.warn({ requestId, reason }, 'request aborted by the gateway')
    const name = `${kind} ${upstream}`
    const logFailure = pacers.get(name) ?? createPacer(upstream, kind)
    pacers.set(name, logFailure)
    logFailure(failure, requestId)
  }
}
