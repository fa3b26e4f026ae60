import { createMemoryLimiter } from '../../proxy/limiter/memory-limiter.ts'
import { describeLimiterContract } from './limiter-contract.ts'

describeLimiterContract('embedded counters', () => {
  let nowMs = 5_000
  return Promise.resolve({
    limiters: [createMemoryLimiter({ maxKeys: 10_000, seed: 1, now: () => nowMs })],
    advance: (durationMs) => void (nowMs += durationMs),
    close: () => undefined,
  })
})
