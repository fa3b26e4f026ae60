import type { Log } from '../shared/log.ts'
import type { UpstreamFailure } from './upstream/failure.ts'

/** At most one line in this time says that the backend is busy. */
const busyLineMs = 5_000

/**
 * Writes a line for each request that fails at the backend, or that is cut off there by the gateway's end. Requests that
 * find all connections in use are too many for that, as it is then that work must not add up: the first has its line at
 * once, and one line now and then says how many have followed.
 */
export function createFailureLog(log: Log): (failure: UpstreamFailure, requestId: string) => void {
  let requests = 0
  let pause: NodeJS.Timeout | undefined
  const tellBusy = (reason: string): void => {
    pause = undefined
    if (requests === 0) return
    log.warn({ requests, reason }, 'the backend is busy')
    requests = 0
    pause = setTimeout(tellBusy, busyLineMs, reason).unref()
  }
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
    if (!pause) tellBusy(reason)
  }
}
