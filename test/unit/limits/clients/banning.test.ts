import { expect, test } from 'vitest'
import { recordRefusal } from '../../../../proxy/limits/clients/banning.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/limiters.ts'

const ban = { after: 1, forMs: 60_000, maxMs: 60_000, scope: 'rule' } as const

/** A class, as `Banning` is one. */
class RecordedRefusals {
  readonly told: string[] = []

  refused({ name }: Policy, client: string): void {
    this.told.push(`${name} ${client}`)
  }
}

test('a refusal counts for each client that the rule refused, whatever their quotas, and for no other', () => {
  const login = makePolicy('login', 5, 60_000, { ban })
  const more: Policy = { ...login, quota: 9 }
  const wide = makePolicy('wide', 5, 60_000, { ban })
  const charges = [
    ...chargeAll('one', [wide, more]),
    ...chargeAll('two', [login]),
    ...chargeAll('three', [login]),
  ]
  const states = charges.map(({ policy, partitionKey }) => {
    const exceeded = partitionKey !== 'three' && policy !== wide
    return { policy, exceeded, remaining: 0, resetMs: 500 }
  })
  const banning = new RecordedRefusals()
  recordRefusal(banning, charges, { outcome: 'refused', refusedBy: more, states })
  expect(banning.told).toEqual(['login one', 'login two'])
})
