import type { RedisClient } from '../run-script.ts'

/** Emitted by a client of Redis where a reply shows that its connection leads to a replica; with the error of Redis. */
const AT_REPLICA = 'sluice:at-replica'

/**
 * Gives up a connection that leads to a replica: the next one may lead to the master. A master that became a replica refuses
 * inside the script, where `reconnectOnError` does not see the error.
 */
export function leaveReplica(redis: RedisClient, reason: string): void {
  redis.emit(AT_REPLICA, reason)
  if (isFirstToLeave(redis)) redis.disconnect(true)
}

const left = new WeakSet<RedisClient>()

/**
 * Whether the connection is not being given up already. Each time that ioredis is told to, its socket gets another listener and another
 * timer, and each command in flight an error reply.
 */
export function isFirstToLeave(redis: RedisClient): boolean {
  if (left.has(redis)) return false
  left.add(redis)
  redis.once('close', () => left.delete(redis))
  return true
}

/** Calls back with the reason when a reply shows that the connection leads to a replica. */
export function onReplica(redis: RedisClient, report: (reason: string) => void): void {
  redis.on(AT_REPLICA, report)
}

/** How fast connections follow one another where each leads to a replica. */
export type Leaving = {
  /** A reply shows that this connection leads to a replica. Counts once for each connection. */
  left(): void
  /** Called when there is another connection. */
  connected(): void
  /** Whether one was left so recently that this one probably leads to the same server. */
  isRecent(): boolean
  /** Milliseconds to wait at least before the next connection is made. */
  delayMs(): number
}

/** Milliseconds before the first reconnection, which after a failover mostly leads to the new master. */
const FIRST_DELAY_MS = 50
const MAX_DELAY_MS = 800
/** After this long without a replica, counting begins anew. */
const FORGOTTEN_AFTER_MS = 10_000

/** @param now milliseconds of a monotonic clock */
export function createLeaving(now: () => number): Leaving {
  let leftInARow = 0
  let lastLeftMs = -Infinity
  let isLeft = false
  const isRecent = (): boolean => now() - lastLeftMs < FORGOTTEN_AFTER_MS
  return {
    left() {
      if (isLeft) return
      isLeft = true
      leftInARow = isRecent() ? leftInARow + 1 : 1
      lastLeftMs = now()
    },
    connected: () => void (isLeft = false),
    isRecent,
    delayMs: () => (isRecent() ? Math.min(FIRST_DELAY_MS * 2 ** (leftInARow - 1), MAX_DELAY_MS) : 0),
  }
}
