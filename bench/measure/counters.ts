import { Redis } from 'ioredis'

/** The counters in Redis of any subject: every subject keeps a counter as a plain integer under its own key. */
export type Counters = {
  flush(): Promise<void>
  read(): Promise<{ readonly clients: number; readonly requests: number }>
  close(): void
}

const keysAtATime = 1_000

export async function connectCounters(url: string): Promise<Counters> {
  const redis = new Redis(url, { lazyConnect: true })
  await redis.connect()
  return {
    async flush() {
      await redis.flushall('SYNC')
    },
    async read() {
      let requests = 0
      const seen = new Set<string>()
      for await (const found of redis.scanStream({ count: keysAtATime })) {
        // SCAN may return the same key twice.
        const keys = (found as string[]).filter((key) => !seen.has(key))
        keys.forEach((key) => seen.add(key))
        if (keys.length === 0) continue
        for (const value of await redis.mget(keys)) requests += Number(value ?? 0)
      }
      return { clients: seen.size, requests }
    },
    close: () => redis.disconnect(),
  }
}
