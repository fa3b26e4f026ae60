import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Charge, Decision } from '../../../../proxy/limits/limiter.ts'
import { Leasing } from '../../../../proxy/limits/store/leases/leasing.ts'
import { createModelCounters } from '../../../support/leases/model-counters.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

const policy = makePolicy('api', 100, 60_000, { lease: 30, cost: { reserve: 1 } })

/** Leases on counters that answer immediately. */
function startLeasing(): { readonly decide: (units: number) => Decision } {
  const now = (): number => 0
  const counters = createModelCounters(now, { keepsLeased: true })
  const leasing = new Leasing({
    store: {
      isAnswering: () => true,
      take: (charge, wanted) => Promise.resolve(counters.take(charge, wanted())),
      giveBack: (...given) => counters.giveBack(...given),
      flush: () => undefined,
    },
    ask: (charges) => counters.decide(charges),
    now,
    later: () => undefined,
    telemetry: { leaseChanged: () => undefined },
  })
  return {
    decide(units) {
      const charge: Charge = { policy, partitionKey: 'a', units }
      const decision = leasing.decide([charge])
      if (decision instanceof Promise) throw new TypeError('these counters answer at once')
      return decision
    },
  }
}

test('units that are held count as left, whether or not they are enough for the request', async () => {
  const { decide } = startLeasing()
  // After ten requests, a lease of 30 units is taken.
  for (let asked = 0; asked < 10; asked++) decide(1)
  await setImmediate()
  expect(decide(1)).toMatchObject({ outcome: 'allowed', states: [{ remaining: 89 }] })
  expect(decide(28)).toMatchObject({ outcome: 'allowed', states: [{ remaining: 61 }] })
  expect(decide(70)).toMatchObject({ outcome: 'refused', states: [{ exceeded: true, remaining: 61 }] })
  expect(decide(1)).toMatchObject({ outcome: 'allowed', states: [{ remaining: 60 }] })
})
