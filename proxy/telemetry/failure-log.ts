import type { Log } from '../../shared/log.ts'
import { paceLines } from './paced-lines.ts'

/** Minimum time between two lines that say that the backend is busy, and between two that say that this machine is at a limit. */
const pacedMs = 5_000

/** Why a request failed at the backend; `kind` is one of `FailureKind`. */
type Failure = { readonly kind: string; readonly message: string; readonly cause?: unknown }

/** The settings that decide how long, or how many, where that is why a request failed. */
const settingsOf: Readonly<Partial<Record<string, string>>> = {
  busy: 'UPSTREAM_CONNECTIONS, UPSTREAM_QUEUE, UPSTREAM_CONNECT_TIMEOUT',
  'connect-timeout': 'UPSTREAM_CONNECT_TIMEOUT',
  'idle-timeout': 'UPSTREAM_IDLE_TIMEOUT',
  timeout: 'UPSTREAM_TIMEOUT',
}

/**
 * Writes a line for each request that fails at the backend, or that is aborted by the shutdown. Requests that get no
 * connection are too many for a line each: the first is logged at once, and later lines say how many have followed.
 */
export function createFailureLog(log: Log): (failure: Failure, requestId: string) => void {
  const tellBusy = paceLines<string>(pacedMs, (requests, reason) =>
    log.warn(
      { requests, reason, settings: settingsOf.busy },
      'requests answered 503: no connection to the backend is free',
    ),
  )
  const tellLocalLimit = paceLines<string>(pacedMs, (requests, reason) =>
    log.error({ requests, reason }, 'requests answered 503: the gateway cannot open more connections'),
  )
  return ({ kind, message: reason, cause: err }, requestId) => {
    if (kind === 'busy') tellBusy(reason)
    else if (kind === 'local-limit') tellLocalLimit(reason)
    else if (kind === 'aborted') log.warn({ requestId, reason }, 'request aborted by the gateway')
    else
      log.warn({ requestId, kind, reason, settings: settingsOf[kind], err }, 'request to the backend failed')
  }
}
