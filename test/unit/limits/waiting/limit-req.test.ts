import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryLimiter } from '../../../../proxy/limits/store/memory/limiter.ts'
import { delayMsOf } from '../../../../proxy/limits/waiting/delay-of.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'
import { createLimitReq } from '../../../support/limiter/limit-req.ts'

/** Rates at which a millisecond is a whole number of nginx's thousandths of a request, so that nginx rounds nothing. */
const settings = fc.record({
  requestsPerSecond: fc.constantFrom(1, 2, 5, 10, 50, 100),
  burst: fc.integer({ min: 1, max: 30 }),
  delay: fc.integer({ min: 0, max: 10 }),
})
/** Pauses between requests, as multiples of the time for one request. */
const pauses = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true })), {
  minLength: 1_000,
  maxLength: 1_000,
})

test('requests are admitted, delayed and refused as by limit_req of nginx without nodelay', () => {
  fc.assert(
    fc.property(settings, pauses, ({ requestsPerSecond, burst, delay: wanted }, parts) => {
      const delay = Math.min(wanted, burst - 1)
      const unitMs = 1000 / requestsPerSecond
      const nginx = createLimitReq({ requestsPerSecond, burst, delay })
      const policy = makePolicy('rate', delay + 1, (delay + 1) * unitMs, {
        algorithm: 'token-bucket',
        over: { delayMs: (burst - delay) * unitMs, waiting: 1000 },
      })
      let nowMs = 0
      const limiter = new MemoryLimiter({ maxKeys: 10, seed: 1, now: () => nowMs })
      for (const part of parts) {
        nowMs += Math.round(part * unitMs)
        const theirs = nginx.decide(nowMs)
        const decision = limiter.decide([{ policy, partitionKey: 'ip:192.0.2.1' }])
        const [state] = decision.outcome === 'unavailable' ? [] : decision.states
        const ours = decision.outcome === 'allowed' && state ? delayMsOf(state) : undefined
        expect(ours === undefined, `at ${nowMs} ms`).toBe(theirs === undefined)
        // nginx rounds a delay down to whole milliseconds.
        if (ours !== undefined) expect(Math.floor(ours + 1e-3), `at ${nowMs} ms`).toBe(theirs)
      }
    }),
    { numRuns: 30 },
  )
})
