import type { Log } from '../../../../shared/log.ts'
import type { RequestLog } from '../../../server/handler-options.ts'
import { paceLines } from '../../../telemetry/paced-lines.ts'

const PACE_MS = 5_000

/** Logs auth requests that cannot be decided, paced, because a mistake in a proxy's configuration affects all of its requests. */
export function createUnusableLog(
  log: Log,
  { logAddresses }: { readonly logAddresses: boolean },
): RequestLog['onUnusableAuthRequest'] {
  const logPaced = paceLines<{ peer: string; reason: string }>(PACE_MS, (requests, { peer, reason }) =>
    log.warn(
      { requests, reason, peer: logAddresses ? peer : undefined },
      'auth requests rejected: check the configuration of the proxy that sends them',
    ),
  )
  return (peer, reason) => logPaced({ peer, reason })
}
