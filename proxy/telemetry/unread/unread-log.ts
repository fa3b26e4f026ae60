import type { Log } from '../../../shared/log.ts'
import { paceLines } from '../paced-lines.ts'

const minPauseMs = 60_000

/**
 * Writes a line when connections are closed for the responses that their clients do not read: the first at once, then one a
 * minute at most that says how many have followed.
 *
 * @param settings.maxUnreadBytes `MAX_UNREAD_SIZE`
 */
export function createUnreadLog(
  log: Log,
  { maxUnreadBytes }: { readonly maxUnreadBytes: number },
): (connections: number) => void {
  const tell = paceLines(minPauseMs, (connections) =>
    log.warn(
      { connections, maxUnreadBytes },
      'MAX_UNREAD_SIZE reached: closed the connections with the most unread response data',
    ),
  )
  return (connections) => tell(undefined, connections)
}
