import { createEmbeddedLimiter } from '../../proxy/limits/store/create-limiter.ts'
import { limiterOptions } from '../support/limiter/limiters.ts'
import { describeLimiterContract } from './limiter-contract.ts'

describeLimiterContract('embedded counters', () => {
  let nowMs = 5_000
  const limiter = createEmbeddedLimiter(limiterOptions({ now: () => nowMs }))
  return Promise.resolve({
    limiters: [limiter],
    operations: limiter,
    advance: (durationMs) => void (nowMs += durationMs),
    close: () => undefined,
  })
})
