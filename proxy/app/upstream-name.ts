import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import type { Log } from '../../shared/log.ts'

/**
 * Warns where the backend's host name does not resolve: a mistake in it would show with the first request only. It may also
 * be that the backend is yet to be started, so nothing waits for this and nothing depends on it.
 */
export function warnOfUnknownUpstream({ hostname }: URL, log: Log): void {
  if (isIP(hostname.replace(/^\[|\]$/g, '')) > 0) return
  lookup(hostname, (error) => {
    if (error) {
      const about = { hostname, reason: error.code }
      log.warn(about, 'the host name in UPSTREAM_URL does not resolve: requests get 502 until it does')
    }
  })
}
