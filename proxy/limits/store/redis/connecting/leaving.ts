import type { RedisClient } from '../run-script.ts'

/** Emitted by a Redis client, with the error of Redis, when a reply shows that its connection leads to a replica. */
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
 * Returns false if the connection is being given up already. Each time that ioredis is told to disconnect, its socket gets another listener
 * and another timer, and each command in flight gets an error reply.
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

/** How fast connections follow one another if each leads to a replica. */
export type Leaving = {
  /** Called when a reply shows that this connection leads to a replica. Counts once for each connection. */
  left(): void
  /** Called when a new connection is established. */
  connected(): void
  /** Whether a connection was left so recently that the current one probably leads to the same server. */
  isRecent(): boolean
  /** Returns the minimum time to wait before the next connection is made, in milliseconds. */
  delayMs(): number
}

/** Milliseconds before the first reconnection, which after a failover mostly leads to the new master. */
const FIRST_DELAY_MS = 50
const MAX_DELAY_MS = 800
/** After this long without a replica, counting starts again. */
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
