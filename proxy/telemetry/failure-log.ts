import type { Log } from '../../shared/log.ts'
import { paceLines } from './paced-lines.ts'

/** The failure of a request at the backend; `kind` is one of `FailureKind`. */
type Failure = { readonly kind: string; readonly message: string; readonly cause?: unknown }

/** The settings that set the time or the number that a failed request exceeded, by kind of failure. */
const settingsOf: Readonly<Partial<Record<string, string>>> = {
  busy: 'UPSTREAM_CONNECTIONS, UPSTREAM_QUEUE, UPSTREAM_CONNECT_TIMEOUT',
  'connect-timeout': 'UPSTREAM_CONNECT_TIMEOUT',
  'idle-timeout': 'UPSTREAM_IDLE_TIMEOUT',
  timeout: 'UPSTREAM_TIMEOUT',
}

/** The lines about a kind of failure. `everyMs`: minimum time between two lines about one backend. */
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
 * Logs requests that fail at a backend. The first failure of a kind is logged at once; later lines have the number of further failures and
 * the id of the last request, because a client may be able to make all of its requests fail. Each request that the shutdown aborts has its
 * own line.
 *
 * @returns a function that returns the log of a backend's failures, by the name of the backend
 */
export function createFailureLog(log: Log): (upstream: string) => LogFailure {
  /** By name and kind, so that they survive a reload of the routes. */
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
