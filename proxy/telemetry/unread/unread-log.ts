import type { Log } from '../../../shared/log.ts'
import { paceLines } from '../paced-lines.ts'

const MIN_PAUSE_MS = 60_000

/**
 * Logs connections, and streams of proxies, that are ended because their clients do not read the responses: the first at once, then at most
 * one line a minute with the number of further ones.
 *
 * @param settings.maxUnreadBytes the bound on the unread bytes of all clients together
 */
export function createUnreadLog(
  log: Log,
  { maxUnreadBytes }: { readonly maxUnreadBytes: number },
): (connections: number) => void {
  const logPaced = paceLines(MIN_PAUSE_MS, (connections) =>
    log.warn(
      { connections, maxUnreadBytes },
      'clients leave too many responses unread: closed the connections, or streams of proxies, with the most unread data',
    ),
  )
  return (connections) => logPaced(undefined, connections)
}
