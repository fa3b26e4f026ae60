import { startReplicas } from '../support/limiter/limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { describeLimiterContract } from './limiter-contract.ts'

describeLimiterContract('counters in Redis', async () => startReplicas(await freshRedis(), 1))
