import { expect, test } from 'vitest'
import type { Charge, Decision } from '../../../../proxy/limits/limiter.ts'
import { decideWithoutStore } from '../../../../proxy/limits/store/outage/store-fallback.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

const local = makePolicy('local', 1, 1000)
const local2 = makePolicy('local-2', 1, 1000)
const open = makePolicy('open', 1, 1000, { onStoreError: 'open' })
const closed = makePolicy('closed', 1, 1000, { onStoreError: 'closed' })
const shadowClosed = makePolicy('shadow-closed', 1, 1000, { onStoreError: 'closed', mode: 'shadow' })

const decided: Decision = { outcome: 'allowed', states: [] }

test.each([
  { policies: [local], asks: ['local'], outcome: 'allowed' },
  { policies: [open], asks: undefined, outcome: 'allowed' },
  { policies: [closed], asks: undefined, outcome: 'unavailable' },
  { policies: [local, open, local2], asks: ['local', 'local-2'], outcome: 'allowed' },
  { policies: [local, closed], asks: undefined, outcome: 'unavailable' },
  { policies: [open, closed, local], asks: undefined, outcome: 'unavailable' },
  { policies: [shadowClosed], asks: undefined, outcome: 'allowed' },
  { policies: [shadowClosed, local], asks: ['local'], outcome: 'allowed' },
])(
  '$policies.0.name, $policies.1.name, $policies.2.name: local counters decide for $asks',
  ({ policies, asks, outcome }) => {
    let asked: readonly Charge[] | undefined
    const decision = decideWithoutStore(chargeAll('ip:1', policies), true, (charges) => {
      asked = charges
      return decided
    })
    expect(asked?.map(({ policy }) => policy.name)).toEqual(asks)
    expect(decision.outcome).toBe(outcome)
    if (decision.outcome === 'unavailable') expect(decision.uncertain).toBe(true)
    if (decision.outcome === 'allowed') expect(decision.withoutStore).toBe(true)
  },
)
