import type { Log } from '../../../shared/log.ts'
import { paceLines } from '../paced-lines.ts'

const minPauseMs = 60_000

/**
 * Writes a line when connections are closed for the responses that their clients do not read: the first at once, then one a
 * minute at most that says how many have followed.
 *
 * @param settings.maxUnreadBytes of all clients together
 */
export function createUnreadLog(
  log: Log,
  { maxUnreadBytes }: { readonly maxUnreadBytes: number },
): (connections: number) => void {
  const tell = paceLines(minPauseMs, (connections) =>
    log.warn(
      { connections, maxUnreadBytes },
      'clients leave too many responses unread: closed the connections with the most unread data',
    ),
  )
  return (connections) => tell(undefined, connections)
}
