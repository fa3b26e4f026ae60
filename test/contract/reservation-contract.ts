import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Charge, Reservation } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { withRequestedUnits } from '../../proxy/limits/costs/requested-charges.ts'
import { planKeyName } from '../../proxy/limits/plans/plan-key-name.ts'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, reservationsOf } from '../support/limiter/decisions.ts'
import { openSubject, type StartSubject } from '../support/limiter/subject.ts'
import { eventually } from '../support/wait/eventually.ts'

const failures = [{ first: 401, last: 401 }]

const byAccount: Partial<Policy> = { partition: [{ kind: 'body', name: 'email', path: ['email'] }] }

/** Rules by account, whose requests may be batches. */
const batched = {
  fixed: makePolicy('batched.fixed', 5, 60_000, byAccount),
  failures: makePolicy('batched.failures', 5, 60_000, { ...byAccount, countStatus: failures }),
  sliding: makePolicy('batched.sliding', 5, 60_000, { ...byAccount, algorithm: 'sliding' }),
  slidingFailures: makePolicy('batched.sliding-failures', 5, 60_000, {
    ...byAccount,
    algorithm: 'sliding',
    countStatus: failures,
  }),
  bucket: makePolicy('batched.bucket', 5, 3_600_000, { ...byAccount, algorithm: 'token-bucket' }),
}

const byStoredPlan: Partial<Policy> = {
  plans: { quotas: { free: 50, pro: 10_000 } },
  cost: { reserve: { paths: [['max_tokens']] }, settle: { kind: 'json', path: ['n'] } },
}

const policies = {
  ...batched,
  login: makePolicy('reserved.login', 5, 60_000, { countStatus: failures }),
  slidingLogin: makePolicy('reserved.sliding', 5, 60_000, { algorithm: 'sliding', countStatus: failures }),
  brief: makePolicy('reserved.brief', 3, 1000, { countStatus: failures }),
  tokens: makePolicy('reserved.tokens', 1000, 60_000, {
    cost: { reserve: 100, settle: { kind: 'header', name: 'x-cost', hide: false } },
  }),
  // Requests state their units; plans differ from the quota in both directions.
  planned: makePolicy('reserved.planned', 100, 60_000, byStoredPlan),
  plannedBucket: makePolicy('reserved.planned-bucket', 100, 3_600_000, {
    ...byStoredPlan,
    algorithm: 'token-bucket',
  }),
  heavy: makePolicy('reserved.heavy', 10, 60_000, { cost: { reserve: 3 } }),
  exports: makePolicy('reserved.exports', 2, LEASE_MS, { algorithm: 'concurrency' }),
  shadow: makePolicy('reserved.shadow', 2, 60_000, { mode: 'shadow', countStatus: failures }),
  narrow: makePolicy('reserved.narrow', 1, 60_000),
}

/** The promises of every counter store about reservations, which are settled once their cost is known. */
export function describeReservationContract(name: string, start: StartSubject): void {
  describe(name, () => {
    const subject = openSubject(start, Object.values(policies))

    /** Asks a limiter of the subject, and returns the reservations. */
    async function reserve(charges: readonly Charge[], replica = 0) {
      const decision = await subject.limiters[replica % subject.limiters.length]?.decide(charges)
      return { decision, reservations: reservationsOf(decision) }
    }

    function settle(reservations: readonly Reservation[], costUnits: number, replica = 0): void {
      for (const reservation of reservations)
        subject.limiters[replica % subject.limiters.length]?.settle(reservation, costUnits)
    }

    async function usedBy(charges: readonly Charge[]): Promise<number | undefined> {
      const [state] = await subject.operations.inspect(charges)
      return state?.used
    }

    /** Settling is not awaited, so its effect shows a moment later. */
    const untilUsed = (charges: readonly Charge[], units: number): Promise<void> =>
      eventually(`${units} units are used`, async () => (await usedBy(charges)) === units)

    async function pass(time: number): Promise<void> {
      if (subject.advance) subject.advance(time)
      else await sleep(time)
    }

    test.each([policies.login, policies.slidingLogin])(
      '$name: refunded units can be used again',
      async (policy) => {
        const charges = chargeAll(newClient(), [policy])
        for (let round = 0; round < 12; round++) {
          const { decision, reservations } = await reserve(charges, round)
          expect(decision).toMatchObject({ outcome: 'allowed', states: [{ remaining: 4 }] })
          settle(reservations, 0, round)
          await untilUsed(charges, 0)
        }
        for (let round = 0; round < 5; round++) settle((await reserve(charges, round)).reservations, 1, round)
        expect((await reserve(charges)).decision?.outcome).toBe('refused')
      },
    )

    test.each([policies.login, policies.slidingLogin])(
      '$name: no more of 200 parallel requests pass than the quota, whatever they cost',
      async (policy) => {
        const charges = chargeAll(newClient(), [policy])
        const decisions = await decideAtOnce(subject.limiters, 200, charges)
        expect(countAllowed(decisions)).toBe(5)
        const reservations = decisions.flatMap(reservationsOf)
        expect(reservations).toHaveLength(5)
        settle(reservations.slice(0, 2), 0)
        await untilUsed(charges, 3)
        expect(countAllowed(await decideAtOnce(subject.limiters, 200, charges))).toBe(2)
      },
    )

    test.each(Object.values(batched))(
      '$name: a batch counts as many units as it has requests, all of them or none',
      async (policy) => {
        const [a, b] = [newClient(), newClient()]
        const batch = (...counts: [string, number][]): Charge[] =>
          counts.map(([partitionKey, units]) => ({ policy, partitionKey, units }))
        const outcomeOf = async (charges: Charge[], replica: number): Promise<unknown> =>
          (await reserve(charges, replica)).decision?.outcome
        expect(await outcomeOf(batch([a, 20]), 0)).toBe('refused')
        expect(await outcomeOf(batch([a, 3], [b, 1]), 1)).toBe('allowed')
        expect(await outcomeOf(batch([b, 2], [a, 3]), 0)).toBe('refused')
        expect(await outcomeOf(batch([a, 3], [b, 2]), 1)).toBe('refused')
        // A charge that does not fit says nothing about a smaller one.
        expect(await outcomeOf(batch([b, 2], [a, 2]), 0)).toBe('allowed')
        expect(await outcomeOf(batch([a, 1]), 1)).toBe('refused')
        expect(await usedBy(batch([a, 1]))).toBe(5)
        expect(await usedBy(batch([b, 1]))).toBe(3)
      },
    )

    test.each(Object.values(batched))(
      '$name: of 60 batches at once no more pass than the quota',
      async (policy) => {
        const charges = [{ policy, partitionKey: newClient(), units: 2 }]
        expect(countAllowed(await decideAtOnce(subject.limiters, 60, charges))).toBe(2)
      },
    )

    test.each([batched.failures, batched.slidingFailures])(
      '$name: a batch gives all of its units back',
      async (policy) => {
        const charges = [{ policy, partitionKey: newClient(), units: 4 }]
        for (let round = 0; round < 3; round++) {
          const { decision, reservations } = await reserve(charges, round)
          expect(decision).toMatchObject({ outcome: 'allowed', states: [{ remaining: 1 }] })
          settle(reservations, 0, round)
          await untilUsed(charges, 0)
        }
      },
    )

    test('a reservation of a window that has ended gives nothing back to the next one', async () => {
      const charges = chargeAll(newClient(), [policies.brief])
      const early = await reserve(charges)
      await pass(1100)
      const late = [await reserve(charges), await reserve(charges)]
      settle(early.reservations, 0)
      settle(late[0]?.reservations ?? [], 1)
      await settled()
      expect(await usedBy(charges)).toBe(2)
    })

    test('a reservation of an ended window that was refunded completely gives nothing back to the next one', async () => {
      const charges = chargeAll(newClient(), [policies.brief])
      const first = await reserve(charges)
      settle(first.reservations, 0)
      await untilUsed(charges, 0)
      await pass(300)
      const { decision } = await reserve(charges)
      const [state] = decision?.outcome === 'allowed' ? decision.states : []
      expect(state?.resetMs).toBeGreaterThan(900)
    })

    test('costs above the reservation are charged, below it refunded', async () => {
      const charges = chargeAll(newClient(), [policies.tokens])
      settle((await reserve(charges)).reservations, 40)
      await untilUsed(charges, 40)
      settle((await reserve(charges)).reservations, 700)
      await untilUsed(charges, 740)
      expect((await reserve(charges, 1)).decision).toMatchObject({ states: [{ remaining: 160 }] })
      expect((await reserve(charges)).decision).toMatchObject({ states: [{ remaining: 60 }] })
      expect((await reserve(charges)).decision?.outcome).toBe('refused')
    })

    test('a cost above the whole quota is a debt for the rest of the window', async () => {
      const charges = chargeAll(newClient(), [policies.tokens])
      settle((await reserve(charges)).reservations, 5000)
      await untilUsed(charges, 5000)
      expect((await reserve(charges)).decision).toMatchObject({
        outcome: 'refused',
        states: [{ remaining: 0 }],
      })
    })

    test('a fixed cost counts as so many units', async () => {
      const charges = chargeAll(newClient(), [policies.heavy])
      const decisions = await decideAtOnce(subject.limiters, 20, charges)
      expect(countAllowed(decisions)).toBe(3)
      expect(await usedBy(charges)).toBe(9)
      expect(decisions.flatMap(reservationsOf)).toEqual([])
    })

    test("the units of a charge replace the policy's", async () => {
      const [charge] = chargeAll(newClient(), [policies.tokens])
      if (!charge) throw new RangeError('one charge')
      const { decision, reservations } = await reserve([{ ...charge, units: 250 }])
      expect(decision).toMatchObject({ states: [{ remaining: 750 }] })
      settle(reservations, 250)
      await settled()
      expect(await usedBy([charge])).toBe(250)
    })

    test.each([policies.planned, policies.plannedBucket])(
      '$name: requests reserve the units that they state, at most the quota of the plan that the store has',
      async (policy) => {
        const telemetry = { reserveUnread: () => undefined }
        const statedIn = (client: string, body: string): readonly Charge[] =>
          withRequestedUnits(chargeAll(client, [policy]), Buffer.from(body), telemetry)
        const [pro, free, none] = [newClient(), newClient(), newClient()]
        const keyName = planKeyName(policy)
        expect(await subject.operations.plans.set({ partitionKey: pro, keyName }, 'pro')).toBe('done')
        expect(await subject.operations.plans.set({ partitionKey: free, keyName }, 'free')).toBe('done')

        const passed = (
          await decideAtOnce(subject.limiters, 20, statedIn(pro, '{"max_tokens":4000}'))
        ).flatMap(reservationsOf)
        expect(passed.map(({ units }) => units)).toEqual([4000, 4000])
        settle(passed, 0)
        await untilUsed(chargeAll(pro, [policy]), 0)

        for (const [client, quota] of [
          [pro, 10_000],
          [free, 50],
          [none, 100],
        ] as const)
          for (const body of ['{"max_tokens":80000}', '{}', '[]']) {
            const { decision, reservations } = await reserve(statedIn(client, body))
            expect(decision).toMatchObject({
              outcome: 'allowed',
              states: [{ remaining: 0, policy: { quota } }],
            })
            expect(reservations.map(({ units }) => units)).toEqual([quota])
            settle(reservations, 0)
            await untilUsed(chargeAll(client, [policy]), 0)
          }
      },
    )

    test('requests in flight count until they are over, on whichever replica', async () => {
      const charges = chargeAll(newClient(), [policies.exports])
      const decisions = await decideAtOnce(subject.limiters, 50, charges)
      expect(countAllowed(decisions)).toBe(2)
      expect(await usedBy(charges)).toBe(2)
      for (const [index, decision] of decisions.entries()) settle(reservationsOf(decision), 0, index)
      await untilUsed(charges, 0)
      expect((await reserve(charges, 1)).decision).toMatchObject({
        outcome: 'allowed',
        states: [{ remaining: 1 }],
      })
    })

    test('a shadow rule reserves only the remaining units', async () => {
      const charges = chargeAll(newClient(), [policies.shadow])
      const decisions = await decideAtOnce(subject.limiters, 6, charges)
      expect(countAllowed(decisions)).toBe(6)
      const reservations = decisions.flatMap(reservationsOf)
      expect(reservations).toHaveLength(2)
      settle(reservations, 0)
      await untilUsed(charges, 0)
    })

    test('a request that another rule refuses reserves nothing', async () => {
      const all = [policies.login, policies.slidingLogin, policies.heavy, policies.exports, policies.narrow]
      const charges = chargeAll(newClient(), all)
      const first = await reserve(charges)
      expect(first.decision?.outcome).toBe('allowed')
      expect(first.reservations).toHaveLength(3)
      const refused = await reserve(charges)
      expect(refused.decision?.outcome).toBe('refused')
      expect(refused.reservations).toEqual([])
      expect((await subject.operations.inspect(charges)).map(({ used }) => used)).toEqual([1, 1, 3, 1, 1])
    })

    /** Resolves when all earlier requests have reached the counters, because later commands are executed after them. */
    async function settled(): Promise<void> {
      for (let turn = 0; turn < 3; turn++) {
        for (const replica of subject.limiters.keys())
          await reserve(chargeAll(newClient(), [policies.login]), replica)
      }
    }
  })
}
