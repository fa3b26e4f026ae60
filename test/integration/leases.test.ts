import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { RedisLeaseStore } from '../../proxy/limits/store/redis/settling/lease-store.ts'
import { giveBackLeasesScript } from '../../proxy/limits/store/redis/scripts/lease.ts'
import { createDescriber } from '../../proxy/limits/store/redis/keys.ts'
import { LEASE_MS, MAX_LEASE_AGE_MS, type Lease } from '../../proxy/limits/store/leases/lease-store.ts'
import type { Policy } from '../../proxy/policy.ts'
import { doAtOnce } from '../../shared/steps.ts'
import { askOften } from '../support/leases/ask-often.ts'
import { expectReturned } from '../support/leases/returned-units.ts'
import { watchForWaiting } from '../support/load/core-time.ts'
import { createModelCounters } from '../support/leases/model-counters.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { startReplicas } from '../support/limiter/limiters.ts'
import { runs } from '../support/random/runs.ts'
import {
  closeAfterTest,
  openAnsweringLimiter,
  openRedis,
  readDocumentedRights,
} from '../support/redis/redis-limiters.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { startRelay } from '../support/network/relay.ts'
import { eventually } from '../support/wait/eventually.ts'

const HOUR_MS = 3_600_000
const fixed = makePolicy('api', 5000, HOUR_MS, { lease: 'auto' })
const monthly = makePolicy('month', 5000, 31 * 24 * HOUR_MS, {
  algorithm: 'calendar',
  calendar: { unit: 'month' },
  lease: 'auto',
})

const operation = fc.oneof(
  fc.record({
    kind: fc.constant('take' as const),
    units: fc.integer({ min: 1, max: 60 }),
    share: fc.constantFrom(1, 10),
    min: fc.integer({ min: 1, max: 12 }),
  }),
  fc.record({ kind: fc.constant('give back' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  fc.record({ kind: fc.constant('reset' as const) }),
  fc.record({ kind: fc.constant('decide' as const), times: fc.integer({ min: 1, max: 20 }) }),
)

test('Redis leases, takes back and keeps at a reset what the model says', async () => {
  const url = await freshRedis()
  const limiter = await openAnsweringLimiter(url)
  const { client } = limiter.connection
  const describe = createDescriber('sluice:1')
  const store = new RedisLeaseStore({
    redis: client,
    describe: ({ policy }) => describe(policy),
    isAnswering: () => true,
  })
  // Loads the script, as a gateway with such a rule does.
  await client.eval(giveBackLeasesScript.source, 0)
  const anyPolicy = fc.record({
    policy: fc.constantFrom(fixed, monthly),
    quota: fc.integer({ min: 5, max: 300 }),
  })
  await fc.assert(
    fc.asyncProperty(
      anyPolicy,
      fc.array(operation, { maxLength: 20 }),
      async ({ policy, quota }, operations) => {
        // Without `lease`, so that the limiter itself leases nothing.
        const plain: Policy = { ...policy, quota }
        delete (plain as { lease?: unknown }).lease
        const [charge] = chargeAll(newClient(), [plain]) as [Charge]
        // The model's clock stands still, which is accurate only while less time passes than the maximum age of a lease.
        const beganMs = performance.now()
        const model = createModelCounters(() => 0, { keepsLeased: true })
        const leases: { readonly ours: Lease; readonly expected: Lease }[] = []
        for (const each of operations) {
          if (each.kind === 'take') {
            const ours = await store.take(charge, () => each)
            const expected = model.take(charge, each)
            expect([ours.units, ours.remaining]).toEqual([expected.units, expected.remaining])
            if (ours.units > 0) leases.push({ ours, expected })
          } else if (each.kind === 'give back') {
            const lease = leases.shift()
            if (!lease) continue
            const units = Math.floor(lease.ours.units * each.share)
            if (units === 0) continue
            store.giveBack(charge, lease.ours, units)
            store.flush()
            model.giveBack(charge, lease.expected, units)
          } else if (each.kind === 'reset') {
            expect(await limiter.reset([charge])).toBe('done')
            model.reset(charge)
            // In Redis these leases belong to an earlier window now. The model cannot tell, because its clock stands still.
            leases.length = 0
          } else {
            const decisions = await decideAtOnce([limiter], each.times, [charge])
            const expected = Array.from({ length: each.times }, () => model.decide([charge]))
            expect(countAllowed(decisions)).toBe(countAllowed(expected))
          }
          const [state] = await limiter.inspect([charge])
          if (performance.now() - beganMs > MAX_LEASE_AGE_MS * 0.9) return
          expect(state?.used).toBe(model.windowOf(charge)?.counted ?? 0)
        }
      },
    ),
    { numRuns: runs(300) },
  )
})

test.for([fixed, monthly])(
  'gateways use up exactly the quota under $name, mostly without Redis',
  async (policy) => {
    const { limiters, operations } = closeAfterTest(await startReplicas(await freshRedis(), 3))
    const charges = chargeAll(newClient(), [policy])
    const isBusy = watchForWaiting()
    const { decisions, decidedHere } = await askOften(limiters, charges, { perMs: 8, forMs: 300 })
    const counted = async (): Promise<number> => (await operations.inspect(charges))[0]?.used ?? NaN
    await expectReturned('units on lease when the quota is used up are back', isBusy, async () => [
      await counted(),
      countAllowed(decisions),
    ])
    const left = policy.quota - (await counted())
    const rest = await decideAtOnce(limiters, policy.quota, charges)
    expect(countAllowed(rest)).toBe(left)
    expect(decidedHere).toBeGreaterThan(decisions.length / 4)
  },
)

test('unused leased units are given back', async () => {
  const { limiters, operations } = closeAfterTest(await startReplicas(await freshRedis(), 2))
  const charges = chargeAll(newClient(), [fixed])
  const isBusy = watchForWaiting()
  const { decisions, decidedHere } = await askOften(limiters, charges)
  expect(decidedHere).toBeGreaterThan(0)
  await expectReturned('as much is counted as was admitted', isBusy, async () => [
    (await operations.inspect(charges))[0]?.used,
    countAllowed(decisions),
  ])
})

test('a gateway that stops returns its leased units at once', async () => {
  const url = await freshRedis()
  const limiter = await openAnsweringLimiter(url)
  const other = await openAnsweringLimiter(url)
  const charges = chargeAll(newClient(), [{ ...fixed, lease: 1000 }])
  const { decisions } = await askOften([limiter], charges, { forMs: 50 })
  const used = async (): Promise<number | undefined> => (await other.inspect(charges))[0]?.used
  await eventually('a lease is held', async () =>
    expect(await used()).toBeGreaterThan(countAllowed(decisions)),
  )
  limiter.close()
  await eventually('it is given back', async () => expect(await used()).toBe(countAllowed(decisions)))
})

test('a changed table gives all leased units back', async () => {
  const url = await freshRedis()
  const limiter = await openAnsweringLimiter(url)
  const charges = chargeAll(newClient(), [{ ...fixed, lease: 1000 }])
  const { decisions } = await askOften([limiter], charges, { forMs: 50 })
  doAtOnce(limiter.useTable([fixed]))
  await eventually('they are given back', async () =>
    expect((await limiter.inspect(charges))[0]?.used).toBe(countAllowed(decisions)),
  )
})

test('units on lease at a reset do not add to the quota', async () => {
  const { limiters, operations } = closeAfterTest(await startReplicas(await freshRedis(), 3))
  const charges = chargeAll(newClient(), [{ ...fixed, quota: 1000, lease: 300 }])
  await askOften(limiters, charges, { perMs: 2, forMs: 40 })
  expect(await operations.reset(charges)).toBe('done')
  const { decisions } = await askOften(limiters, charges, { perMs: 5, forMs: 200 })
  const allowed = countAllowed(decisions)
  expect(allowed).toBeLessThanOrEqual(1000)
  expect(allowed).toBeGreaterThan(0)
})

test('all rules of a request count it, or none: if one refuses, leased units are put back', async () => {
  const { limiters, operations } = closeAfterTest(await startReplicas(await freshRedis(), 2))
  const strict = makePolicy('strict', 200, HOUR_MS)
  const charges = chargeAll(newClient(), [fixed, strict, { ...monthly, lease: 50 }])
  const { decisions } = await askOften(limiters, charges)
  expect(countAllowed(decisions)).toBe(200)
  await eventually('each has counted as many as have passed', async () =>
    expect((await operations.inspect(charges)).map(({ used }) => used)).toEqual([200, 200, 200]),
  )
  const [refusal] = decisions.slice(-1)
  expect(refusal).toMatchObject({
    outcome: 'refused',
    refusedBy: strict,
    states: [{}, { exceeded: true }, {}],
  })
})

test('units that a response gives back are given back in Redis', async () => {
  const limiter = await openAnsweringLimiter(await freshRedis())
  const policy = { ...fixed, quota: 100_000, countStatus: [{ first: 401, last: 401 }], cost: { reserve: 3 } }
  const charges = chargeAll(newClient(), [policy])
  const isBusy = watchForWaiting()
  const { decisions, decidedHere } = await askOften([limiter], charges)
  expect(decidedHere).toBeGreaterThan(0)
  for (const [index, decision] of decisions.entries()) {
    const [state] = decision.outcome === 'allowed' ? decision.states : []
    expect(state?.reservation).toMatchObject({ units: 3 })
    if (state?.reservation) limiter.settle(state.reservation, index % 2 === 0 ? 3 : 0)
  }
  await expectReturned('half of them count', isBusy, async () => [
    (await limiter.inspect(charges))[0]?.used,
    3 * Math.ceil(decisions.length / 2),
  ])
})

test('in shadow, requests over the quota pass and are not counted', async () => {
  const { limiters, operations } = closeAfterTest(await startReplicas(await freshRedis(), 2))
  const charges = chargeAll(newClient(), [{ ...fixed, quota: 600, mode: 'shadow' }])
  const { decisions } = await askOften(limiters, charges)
  expect(countAllowed(decisions)).toBe(decisions.length)
  const exceeded = decisions.filter((decision) => 'states' in decision && decision.states[0]?.exceeded)
  expect(decisions.length - exceeded.length).toBeLessThanOrEqual(600)
  await eventually('no more than the quota is counted', async () =>
    expect((await operations.inspect(charges))[0]?.used).toBe(decisions.length - exceeded.length),
  )
})

test('a user of Redis with the documented rights takes leases', async () => {
  const redis = await startRedisServer()
  const rights = [...readDocumentedRights().counting, '+time', '+decrby']
  await openRedis(redis.url).call('ACL', 'SETUSER', 'sluice', 'on', '>password', ...rights)
  const limiter = await openAnsweringLimiter(`redis://sluice:password@127.0.0.1:${redis.port}`)
  const charges = chargeAll(newClient(), [fixed])
  const isBusy = watchForWaiting()
  const { decisions, decidedHere } = await askOften([limiter], charges)
  expect(decidedHere).toBeGreaterThan(0)
  await expectReturned('unused units come back', isBusy, async () => [
    (await limiter.inspect(charges))[0]?.used,
    countAllowed(decisions),
  ])
  expect(limiter.telemetry.breaker).toEqual([])
})

test('units that are held are used while Redis is away, and not beyond their time', async () => {
  const redis = await startRedisServer()
  const relay = await startRelay(redis.port)
  const limiter = await openAnsweringLimiter(`redis://127.0.0.1:${relay.port}`)
  const charges = chargeAll(newClient(), [{ ...fixed, lease: 1000, onStoreError: 'closed' }])
  const { decisions } = await askOften([limiter], charges, { forMs: 50 })
  await relay.set({ kind: 'refuse' })
  const { decisions: away } = await askOften([limiter], charges, { perMs: 1, forMs: 20 })
  expect(countAllowed(away)).toBeGreaterThan(0)
  await sleep(LEASE_MS)
  const later = await limiter.decide(charges)
  expect(later.outcome).toBe('unavailable')
  expect(countAllowed([...decisions, ...away])).toBeLessThanOrEqual(fixed.quota)
})

test('a refusal is known for a quarter of a second only', async () => {
  const url = await freshRedis()
  const limiter = await openAnsweringLimiter(url)
  const charges = chargeAll(newClient(), [{ ...fixed, quota: 5 }])
  expect(countAllowed(await decideAtOnce([limiter], 8, charges))).toBe(5)
  await eventually('Redis is asked, and what it has refused is refused here from then on', async () => {
    const asked = limiter.decide(charges)
    expect(asked).toBeInstanceOf(Promise)
    expect((await asked).outcome).toBe('refused')
    expect(limiter.decide(charges)).not.toBeInstanceOf(Promise)
  })
  const [{ partitionKey } = { partitionKey: '' }] = charges
  await openRedis(url).set(`sluice:1:{${partitionKey}}:api:${HOUR_MS}`, '4', 'KEEPTTL')
  await eventually('Redis is asked again', async () =>
    expect((await limiter.decide(charges)).outcome).toBe('allowed'),
  )
})

test('the plan of a client holds soon after its change', async () => {
  const url = await freshRedis()
  const limiter = await openAnsweringLimiter(url)
  const policy = { ...fixed, quota: 100_000, plans: { quotas: { small: 10 } } }
  const charges = chargeAll(newClient(), [policy])
  const { decidedHere } = await askOften([limiter], charges)
  expect(decidedHere).toBeGreaterThan(0)
  await limiter.plans.set({ partitionKey: charges[0]?.partitionKey ?? '', keyName: 'ip' }, 'small')
  await eventually('it is refused by its plan', async () => {
    const { decisions } = await askOften([limiter], charges, { forMs: 10 })
    expect(decisions.at(-1)).toMatchObject({ outcome: 'refused', refusedBy: { plan: 'small' } })
  })
})

test('the remaining quota goes down with each request that is decided here', async () => {
  const limiter = await openAnsweringLimiter(await freshRedis())
  const charges = chargeAll(newClient(), [fixed])
  const { decisions } = await askOften([limiter], charges)
  const here = decisions.flatMap((decision) => (decision.outcome === 'allowed' ? decision.states : []))
  expect(here.every(({ remaining }) => remaining >= 0 && remaining < fixed.quota)).toBe(true)
  expect(here.every(({ resetMs }) => resetMs > HOUR_MS - 60_000 && resetMs <= HOUR_MS)).toBe(true)
  expect(here.at(-1)?.remaining).toBeLessThanOrEqual(fixed.quota - decisions.length)
})
