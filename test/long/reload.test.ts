import { test } from 'vitest'
import { freshRedis } from '../support/redis/redis.ts'
import { reloadUnderLoad } from '../support/gateway/reloads.ts'

test.each([
  { workers: '1', store: 'memory' },
  { workers: '4', store: 'memory' },
  { workers: '4', store: 'Redis' },
])('nothing is lost in 200 reloads: $workers, $store', async ({ workers, store }) => {
  const redis = store === 'Redis' ? { REDIS_URL: await freshRedis() } : undefined
  await reloadUnderLoad({ WORKERS: workers, ...redis }, 200)
})
