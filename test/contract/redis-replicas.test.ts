import { startReplicas } from '../support/limiters.ts'
import { freshRedis } from '../support/redis.ts'
import { describeLimiterContract } from './limiter-contract.ts'

describeLimiterContract('counters in Redis, shared by three replicas', async () =>
  startReplicas(await freshRedis(), 3),
)
