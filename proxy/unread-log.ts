import type { GatewaySettings } from './config/settings.ts'
import type { Log } from '../shared/log.ts'

const leastPauseMs = 60_000

/**
 * Writes a line when connections are closed for the responses that their clients do not read: the first at once, then one a
 * minute at most that says how many have followed.
 */
export function createUnreadLog(
  log: Log,
  { maxUnreadBytes }: GatewaySettings,
): (connections: number) => void {
  let closed = 0
  let pause: NodeJS.Timeout | undefined
  const tell = (): void => {
    pause = undefined
    if (closed === 0) return
    log.warn(
      { connections: closed, maxUnreadBytes },
      'clients do not read their responses: MAX_UNREAD_SIZE is reached, closed connections of those who hold most',
    )
    closed = 0
    pause = setTimeout(tell, leastPauseMs).unref()
  }
  return (connections) => {
    closed += connections
    if (!pause) tell()
  }
}
