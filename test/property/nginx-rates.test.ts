import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryLimiter } from '../../proxy/limits/store/memory/limiter.ts'
import { chargeAll } from '../support/limiter/charges.ts'
import { runs } from '../support/random/runs.ts'
import { loadWithFile } from '../support/gateway/settings.ts'

/*
 * docs/recipes/nginx.md says that `rate` and `burst` of nginx's limit_req become a token bucket whose burst is one larger. Both must then
 * allow the same requests at any times.
 */

type Lets = (nowMs: number) => boolean

/** Decides as `ngx_http_limit_req_lookup` does: in thousandths of a request and in whole milliseconds. */
function nginx(requests: number, per: 's' | 'm', burst: number): Lets {
  const rate = Math.floor((requests * 1000) / (per === 's' ? 1 : 60))
  let last: number | undefined
  let excess = 0
  return (nowMs) => {
    if (last === undefined) {
      last = nowMs
      return true
    }
    const ms = nowMs - last
    const next = Math.max(0, excess - Math.trunc((rate * ms) / 1000) + 1000)
    if (next > burst * 1000) return false
    excess = next
    if (ms > 0) last = nowMs
    return true
  }
}

/** A gateway with the rule from the page. */
function sluice(requests: number, per: 's' | 'm', burst: number): Lets {
  const rule = `{ name: a, match: GET /, algorithm: token-bucket, requests: ${requests}, window: 1${per}, burst: ${burst + 1} }`
  const policies = loadWithFile(`limits: [${rule}]`).settings.rules.map(({ policy }) => policy)
  let clockMs = 0
  const limiter = new MemoryLimiter({ maxKeys: 10, seed: 1, now: () => clockMs })
  return (nowMs) => {
    clockMs = nowMs
    return limiter.decide(chargeAll('ip:192.0.2.1', policies)).outcome === 'allowed'
  }
}

/** A thousand requests: many at once, and some after the time in which one or several drain, or a moment before or after that. */
function arrivalsAt(unitMs: number, burst: number): fc.Arbitrary<number[]> {
  const moment = fc.integer({ min: -2, max: 2 })
  const gap = fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.integer({ min: 0, max: Math.ceil(2 * unitMs) }) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.integer({ min: 1, max: burst + 2 }), moment)
        .map(([units, off]) => Math.max(0, Math.round(units * unitMs) + off)),
    },
  )
  return fc.array(gap, { minLength: 1000, maxLength: 1000 }).map((gaps) => {
    let nowMs = 1_000_000
    return gaps.map((ms) => (nowMs += ms))
  })
}

test.each([
  [20, 0],
  [20, 10],
  [1, 5],
  [7, 3],
  [100, 1],
  [3, 50],
  [999, 20],
])('rate=%ir/s burst=%i lets through the same of a thousand requests', (requests, burst) => {
  fc.assert(
    fc.property(arrivalsAt(1000 / requests, burst), (arrivals) => {
      const [ours, theirs] = [sluice(requests, 's', burst), nginx(requests, 's', burst)]
      expect(arrivals.map(ours)).toEqual(arrivals.map(theirs))
    }),
    { numRuns: runs(20) },
  )
})

// nginx counts 5r/m as 83 thousandths of a request a second, which is 4.98 a minute.
test.each([
  [5, 10],
  [30, 0],
  [90, 5],
])('rate=%ir/m burst=%i lets through the same but for what nginx rounds down', (requests, burst) => {
  fc.assert(
    fc.property(arrivalsAt(60_000 / requests, burst), (arrivals) => {
      const [ours, theirs] = [sluice(requests, 'm', burst), nginx(requests, 'm', burst)]
      const [passed, passedThere] = [ours, theirs].map((lets) => arrivals.filter(lets).length)
      expect(passed).toBeGreaterThanOrEqual(passedThere ?? 0)
      expect(passed).toBeLessThanOrEqual(1.005 * (passedThere ?? 0) + burst / 100 + 3)
    }),
    { numRuns: runs(20) },
  )
})
