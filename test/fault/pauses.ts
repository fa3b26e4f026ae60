import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'

/** Watches for pauses that no test asked for: a busy machine delays this process or Redis. */
export type PauseWatch = {
  /** The total time that this process has been late so far. */
  pausedMs(): number
  /** Resolves when all pauses up to now have been noticed. */
  caughtUp(): Promise<void>
  close(): void
}

const EVERY_MS = 5

/**
 * @param redis a separate connection that the test does not break
 * @param noticed called with the beginning of each time in which Redis did not answer within `maxMs`
 */
export function watchPauses(redis: Redis, maxMs: number, noticed: (fromMs: number) => void): PauseWatch {
  let isOpen = true
  let pausedMs = 0
  let lookedAtMs = performance.now()
  const lateMs = (): number => Math.max(0, performance.now() - lookedAtMs - 2 * EVERY_MS)
  const timer = setInterval(() => {
    pausedMs += lateMs()
    lookedAtMs = performance.now()
  }, EVERY_MS)

  let round = Promise.resolve()
  async function askOn(): Promise<void> {
    while (isOpen) {
      round = askOnce()
      await round
    }
  }
  async function askOnce(): Promise<void> {
    const fromMs = performance.now()
    await redis.ping().catch(() => undefined)
    await sleep(EVERY_MS)
    if (isOpen && performance.now() - fromMs > maxMs) noticed(fromMs)
  }
  void askOn()

  return {
    pausedMs: () => pausedMs + lateMs(),
    async caughtUp() {
      await round
      await round
    },
    close() {
      isOpen = false
      clearInterval(timer)
      redis.disconnect()
    },
  }
}
