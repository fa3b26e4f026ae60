import { test } from 'vitest'
import { freshRedis } from '../support/redis/redis.ts'
import { reloadUnderLoad } from '../support/gateway/reloads.ts'

// test/long/reload.test.ts does this two hundred times, and with four workers.

test.each([
  { workers: '1', store: 'memory' },
  { workers: '2', store: 'memory' },
  { workers: '2', store: 'Redis' },
])('nothing is lost while settings are reloaded: $workers, $store', async ({ workers, store }) => {
  const redis = store === 'Redis' ? { REDIS_URL: await freshRedis() } : undefined
  await reloadUnderLoad({ WORKERS: workers, ...redis }, 10)
})
