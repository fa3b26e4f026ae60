import type { Log } from '../shared/log.ts'
import type { UpstreamFailure } from './upstream/failure.ts'

/** At most one line in this time says that the backend is busy. */
const busyLineMs = 5_000

/**
 * Writes a line for each request that fails at the backend, or that is cut off there by the gateway's end. Requests that find all connections in use are too many for
 * that, as it is then that work must not add up: one line now and then says how many they were.
 *
 * @param now monotonic milliseconds
 */
export function createFailureLog(
  log: Log,
  now: () => number,
): (failure: UpstreamFailure, requestId: string) => void {
  let lastLineMs = -Infinity
  let requests = 0
  return ({ kind, message: reason, cause: err }, requestId) => {
    if (kind === 'aborted') {
      log.warn({ requestId, reason }, 'a request was cut off')
      return
    }
    if (kind !== 'busy') {
      log.warn({ requestId, kind, reason, err }, 'the backend failed')
      return
    }
    requests++
    const nowMs = now()
    if (nowMs - lastLineMs < busyLineMs) return
    log.warn({ requests, reason }, 'the backend is busy')
    lastLineMs = nowMs
    requests = 0
  }
}
