import { createEmbeddedLimiter } from '../../proxy/limits/store/create-limiter.ts'
import { limiterOptions } from '../support/limiter/limiters.ts'
import { describeLimiterContract } from './limiter-contract.ts'

describeLimiterContract('embedded counters', () => {
  let nowMs = 5_000
  const wallNow = (): number => Date.parse('2027-10-30T23:00Z') + Math.floor(nowMs)
  const limiter = createEmbeddedLimiter(limiterOptions({ now: () => nowMs, wallNow }))
  return Promise.resolve({
    limiters: [limiter],
    operations: limiter,
    wallNow,
    advance: (durationMs) => void (nowMs += durationMs),
    close: () => undefined,
  })
})
