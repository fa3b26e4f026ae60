import type { EvictedConnection } from '../../telemetry/telemetry.ts'
import { chooseVictims, type Candidate, type Victim } from './eviction-order.ts'

export type EvictionOptions<Subject> = {
  /** The open connections. */
  readonly open: ReadonlySet<Subject>
  readonly capacity: number
  readonly clientOf: (subject: Subject) => string | undefined
  /** When the subject became idle, in monotonic milliseconds; undefined if it is busy. */
  readonly idleSince: (subject: Subject) => number | undefined
  readonly openedAt: (subject: Subject) => number
  /** Closes a connection, and removes it from `open` before it returns. */
  readonly close: (subject: Subject, state: EvictedConnection) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** A client loses a busy connection only if it has at least this many times the connections of the newcomer, the new one included. */
const MIN_TIMES_NEWCOMER = 8
/** How many victims are chosen at a time, as a share of the limit. */
const BATCH_SHARE = 1 / 64
/** If few connections are idle, the next search waits for this many times the duration of the last one. */
const REST_FACTOR = 10

/**
 * Makes room for new connections at the limit, as nginx does: closes the longest idle connection of the client with the most idle
 * connections. If no connection is idle, the client with the most connections loses its oldest, provided that it has far more connections
 * than the newcomer. So a client that keeps opening connections only pushes out its own.
 *
 * This has to look at all connections, so victims are chosen in batches, and closed one by one as they are needed.
 *
 * @returns a function that takes how many connections the newcomer has, makes room for one more, and returns whether it could
 */
export function createEviction<Subject>(
  options: EvictionOptions<Subject>,
): (newcomersConnections: number) => boolean {
  const { open, capacity, clientOf, idleSince, openedAt, close, now } = options
  const batch = Math.max(1, Math.floor(capacity * BATCH_SHARE))
  // In reverse order: the next victim is the last element.
  let idle: Victim<Subject>[] = []
  let busy: Victim<Subject>[] = []
  let nextLookMs = Number.NEGATIVE_INFINITY

  const look = (): void => {
    const startedMs = now()
    if (startedMs < nextLookMs) return
    const idleOnes: Candidate<Subject>[] = []
    const busyOnes: Candidate<Subject>[] = []
    for (const subject of open) {
      const client = clientOf(subject)
      const sinceMs = idleSince(subject)
      if (sinceMs === undefined) busyOnes.push({ subject, client, sinceMs: openedAt(subject) })
      else idleOnes.push({ subject, client, sinceMs })
    }
    idle = chooseVictims(idleOnes, batch).reverse()
    busy = idle.length === batch ? [] : chooseVictims(busyOnes, batch - idle.length).reverse()
    const endedMs = now()
    nextLookMs = idle.length === batch ? endedMs : endedMs + REST_FACTOR * (endedMs - startedMs)
  }
  const closeIdle = (): boolean => {
    for (let victim = idle.pop(); victim; victim = idle.pop()) {
      if (!open.has(victim.subject) || idleSince(victim.subject) !== victim.sinceMs) continue
      close(victim.subject, 'idle')
      return true
    }
    return false
  }
  const closeBusy = (newcomersConnections: number): boolean => {
    for (let victim = busy.pop(); victim; victim = busy.pop()) {
      if (!open.has(victim.subject)) continue
      if (victim.rank < MIN_TIMES_NEWCOMER * (newcomersConnections + 1)) {
        busy.push(victim)
        return false
      }
      close(victim.subject, 'busy')
      return true
    }
    return false
  }

  return (newcomersConnections) => {
    if (closeIdle()) return true
    look()
    return closeIdle() || closeBusy(newcomersConnections)
  }
}
