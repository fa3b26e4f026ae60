import { expect, test } from 'vitest'
import { recordRefusal } from '../../../../proxy/limits/clients/banning.ts'
import { createThrottledClients } from '../../../../proxy/limits/clients/throttled-clients.ts'
import type { Charge, Decision, Reservation } from '../../../../proxy/limits/limiter.ts'
import { MemoryLimiter } from '../../../../proxy/limits/store/memory/limiter.ts'
import { decidePartly } from '../../../../proxy/limits/store/outage/partly-away.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

const near = makePolicy('near', 5, 60_000)
const far = makePolicy('far', 2, 60_000)
const farSliding = makePolicy('far-sliding', 2, 60_000, { algorithm: 'sliding' })
const farBucket = makePolicy('far-bucket', 2, 60_000, { algorithm: 'token-bucket' })

const asked: Charge = { policy: near, partitionKey: 'near' }
const away: readonly Charge[] = [far, farSliding, farBucket].map((policy) => ({
  policy,
  partitionKey: 'far',
}))
const allowed: Decision = {
  outcome: 'allowed',
  states: [{ policy: near, exceeded: false, remaining: 4, resetMs: 60_000 }],
}
const refused: Decision & { outcome: 'refused' } = {
  outcome: 'refused',
  refusedBy: near,
  states: [{ policy: near, exceeded: true, remaining: 0, resetMs: 30_000 }],
}

function createScene() {
  const local = new MemoryLimiter({ maxKeys: 100, seed: 1, now: () => 1_000 })
  let questions = 0
  const decide = (answer: Decision): Promise<Decision> =>
    decidePartly({
      charges: [...away.slice(0, 1), asked, ...away.slice(1)],
      asked: [asked],
      away,
      ask(charges) {
        questions += 1
        expect(charges).toEqual([asked])
        return Promise.resolve(answer)
      },
      settle: (reservation: Reservation, costUnits) => local.settle(reservation, costUnits),
      reserveWithout: (charges) => local.reservePendingSync(charges),
    })
  return { local, decide, questions: () => questions }
}

test('a request passes where all agree, with the states in the order of its charges', async () => {
  const { decide, local } = createScene()
  const decision = await decide(allowed)
  expect(decision).toMatchObject({ outcome: 'allowed', withoutStore: true })
  if (decision.outcome !== 'allowed') return
  expect(decision.states.map(({ policy }) => policy)).toEqual([far, near, farSliding, farBucket])
  expect(decision.states.map(({ reservation }) => reservation)).toEqual(Array(4).fill(undefined))
  expect(local.takePending(10).map(({ policy }) => policy.name)).toHaveLength(3)
})

test('units counted here are given back where Redis refuses, and not added to it', async () => {
  const { decide, local } = createScene()
  const uncounted = { exceeded: false, remaining: 2, resetMs: 60_000 }
  const states = [
    { ...uncounted, policy: far },
    ...refused.states,
    { ...uncounted, policy: farSliding },
    { ...uncounted, policy: farBucket },
  ]
  for (let asked = 0; asked < 3; asked++) expect(await decide(refused)).toEqual({ ...refused, states })
  expect(local.hasPending()).toBe(false)
  for (const charge of away) expect(local.read(charge)).toBeUndefined()
  expect(await decide(allowed)).toMatchObject({ outcome: 'allowed' })
})

test('Redis is not asked about a request that is refused here', async () => {
  const { decide, questions } = createScene()
  for (let asked = 0; asked < 2; asked++) await decide(allowed)
  expect(await decide(allowed)).toMatchObject({ outcome: 'refused', refusedBy: far })
  expect(questions()).toBe(2)
})

test('a refusal is reported for the client over the limit, not for one under the same policy on the other node', async () => {
  const banning = makePolicy('banning', 1, 60_000, { ban: { after: 1, forMs: 1, maxMs: 1, scope: 'rule' } })
  const chargeOf = (partitionKey: string): Charge => ({ policy: banning, partitionKey })
  const [victim, over] = [chargeOf('victim'), chargeOf('over')]
  const charges = [victim, over]
  const refusedOver: Decision = {
    outcome: 'refused',
    refusedBy: banning,
    states: [{ policy: banning, exceeded: true, remaining: 0, resetMs: 60_000 }],
  }
  const passed: Decision = {
    outcome: 'allowed',
    states: [{ policy: banning, exceeded: false, remaining: 0, resetMs: 60_000 }],
  }
  for (const [asked, away, ask, here] of [
    [[over], [victim], refusedOver, passed],
    [[victim], [over], passed, refusedOver],
  ] as const) {
    const decision = await decidePartly({
      charges,
      asked,
      away,
      ask: () => ask,
      settle: () => undefined,
      reserveWithout: () => here,
    })
    const states = [{ exceeded: false }, { exceeded: true, resetMs: 60_000 }]
    expect(decision).toMatchObject({ outcome: 'refused', states })
    if (decision.outcome !== 'refused') return
    const banned: string[] = []
    recordRefusal({ refused: (_policy, key) => void banned.push(key) }, charges, decision)
    expect(banned).toEqual(['over'])
    const limited = createThrottledClients(10, () => 0)
    limited.record(charges, decision)
    expect(limited.list(undefined, 10).map(({ partitionKey }) => partitionKey)).toEqual(['over'])
  }
})
