import type { Redis } from 'ioredis'

/** The time of Redis's clock, in microseconds. */
export async function redisNowUs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000_000 + Number(micros)
}

/** When a key expires. Redis 6 reports only the remaining time, so this reads it and the clock within one millisecond of Redis. */
export async function expiryMs(redis: Redis, key: string): Promise<number> {
  for (;;) {
    const fromMs = Math.floor((await redisNowUs(redis)) / 1000)
    const leftMs = await redis.pttl(key)
    if (Math.floor((await redisNowUs(redis)) / 1000) === fromMs) return fromMs + leftMs
  }
}
