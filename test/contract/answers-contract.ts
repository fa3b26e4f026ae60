import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { withQuota } from '../../proxy/limits/algorithms/registry.ts'
import type { Charge, Decision } from '../../proxy/limits/limiter.ts'
import { planKeyName } from '../../proxy/limits/plans/plan-key-name.ts'
import { createLimitHeaders } from '../../proxy/limits/replies.ts'
import { createEmbeddedLimiter } from '../../proxy/limits/store/create-limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { limiterOptions } from '../support/limiter/limiters.ts'
import { openSubject, type StartSubject } from '../support/limiter/subject.ts'
import { runs } from '../support/random/runs.ts'

const HOUR_MS = 3_600_000

/** An upper bound on the length of a history. It is far below the lengths of windows and the refill times of buckets, which are hours. */
const MAX_HISTORY_MS = 60_000

function makeCosting(name: string, quota: number, rest: Partial<Policy> = {}): Policy {
  return makePolicy(name, quota, quota * HOUR_MS, { cost: { reserve: 1 }, ...rest })
}

const byAccount: Partial<Policy> = { partition: [{ kind: 'body', name: 'email', path: ['email'] }] }
const byPlan: Partial<Policy> = { plans: { quotas: { large: 9, small: 3 } } }

const policies = [
  makePolicy('answers.plain', 6, 6 * HOUR_MS),
  makePolicy('answers.other', 4, 8 * HOUR_MS),
  makePolicy('answers.none', 0, 2 * HOUR_MS),
  makeCosting('answers.fixed', 12),
  makeCosting('answers.refunded', 7, { cost: { reserve: 1, settle: { kind: 'json', path: ['n'] } } }),
  makeCosting('answers.calendar', 10, { algorithm: 'calendar', calendar: { unit: 'month' } }),
  makeCosting('answers.bucket', 11, { algorithm: 'token-bucket' }),
  makeCosting('answers.delayed', 5, {
    algorithm: 'token-bucket',
    over: { delayMs: 3 * HOUR_MS, waiting: 100 },
  }),
  makePolicy('answers.sliding', 6, 6 * HOUR_MS, { algorithm: 'sliding' }),
  makePolicy('answers.batches', 8, 8 * HOUR_MS, { algorithm: 'sliding', ...byAccount }),
  makeCosting('answers.shadow', 9, { mode: 'shadow' }),
  makeCosting('answers.route', 8, { over: { route: 'page' } }),
  makePolicy('answers.in-flight', 5, 15_000, { algorithm: 'concurrency' }),
  makePolicy('answers.plan', 5, 5 * HOUR_MS, byPlan),
  makeCosting('answers.planned', 5, byPlan),
  makeCosting('answers.planned-bucket', 5, { algorithm: 'token-bucket', ...byPlan }),
]

/** The policies under which a request may take several units. */
const takeUnits = policies.filter(
  ({ cost, partition: [part] }) => cost !== undefined || part?.kind === 'body',
)

/** A charge of a request: one of three clients, the number of units, and whether the quota was lowered at run time. */
const charge = fc.record({
  client: fc.nat(2),
  units: fc.constantFrom(1, 1, 2, 3, 4, 5),
  isLowered: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 0),
})
const request = fc
  .tuple(
    fc.subarray(policies, { minLength: 1, maxLength: 4 }),
    fc.array(charge, { minLength: 4, maxLength: 4 }),
  )
  .map(([chosen, charges]) => chosen.map((policy, at) => ({ policy, ...charges[at] })))
/** A request with a single policy. Redis decides it with dedicated scripts if it is alone in its command. */
const requestOfOne = fc
  .tuple(fc.constantFrom(...policies), charge)
  .map(([policy, drawn]) => [{ policy, ...drawn }])
const history = fc.record({
  plans: fc.array(fc.constantFrom(undefined, 'large', 'small', 'unknown'), { minLength: 3, maxLength: 3 }),
  requests: fc.array(fc.oneof(request, requestOfOne), { minLength: 1, maxLength: 40 }),
})

/**
 * Every store gives clients the same answers: it answers a history of requests as counters in this process do. Reservations are not settled
 * meanwhile, because settling is not awaited. The cache of refusals is emptied before each request, because it repeats an earlier answer.
 */
export function describeAnswersContract(name: string, start: StartSubject): void {
  describe(name, () => {
    const subject = openSubject(start, policies)

    test('the fields of answers are those of counters in memory, whatever requests cost', async () => {
      await fc.assert(
        fc.asyncProperty(history, async ({ plans, requests }) => {
          const { limiters, operations, wallNow } = subject
          const nowMs = (): number => (subject.advance ? 1000 : performance.now())
          const reference = createEmbeddedLimiter(limiterOptions({ now: nowMs, wallNow }))
          const clients = plans.map(() => newClient())
          const [ofPlan] = policies.filter((policy) => policy.plans)
          if (!ofPlan) throw new RangeError('a policy with plans')
          for (const [at, partitionKey] of clients.entries()) {
            const owner = { partitionKey, keyName: planKeyName(ofPlan) }
            for (const store of [operations, reference])
              if (plans[at] !== undefined) expect(await store.plans.set(owner, plans[at])).toBe('done')
          }
          for (const [at, drawn] of requests.entries()) {
            const charges = drawn.map(({ policy, client = 0, units = 1, isLowered }): Charge => {
              const asked = isLowered ? withQuota(policy, 3) : policy
              const partitionKey = clients[client] ?? ''
              return takeUnits.includes(policy)
                ? { policy: asked, partitionKey, units }
                : { policy: asked, partitionKey }
            })
            const limiter = limiters[at % limiters.length]
            for (const replica of limiters) for (const client of clients) replica.forget?.(undefined, client)
            const answer = await limiter?.decide(charges)
            const expected = reference.decide(charges)
            const label = `request ${at}: ${charges.map((each) => `${each.policy.name} ${each.units ?? 1}`).join(', ')}`
            expect(toldBy(answer), label).toEqual(toldBy(expected))
            const toleranceMs = subject.advance ? 0.001 : MAX_HISTORY_MS
            for (const [place, resetMs] of resetsOf(answer).entries())
              expect(Math.abs(resetMs - (resetsOf(expected)[place] ?? NaN)), label).toBeLessThan(toleranceMs)
          }
        }),
        { numRuns: runs(300) },
      )
    })

    test('no window begins with a request that costs more than the quota', async () => {
      const [limiter] = subject.limiters
      for (const policy of takeUnits) {
        const charges = [{ policy: withQuota(policy, 3), partitionKey: newClient(), units: 9 }]
        await limiter?.decide(charges)
        const [state] = await subject.operations.inspect(charges)
        expect(state, policy.name).toMatchObject({ used: 0, resetMs: undefined })
      }
    })
  })
}

const limitHeaders = createLimitHeaders(['ietf', 'x-ratelimit'], false, () => 0)

/** The fields of an answer, except times, which pass. */
function toldBy(decision: Decision | undefined): unknown {
  if (!decision || decision.outcome === 'unavailable') return decision
  const { outcome, states } = decision
  const refusedBy = outcome === 'refused' ? decision.refusedBy.name : undefined
  const told = states.map(({ policy, exceeded, remaining, reservation, isPlanUnknown }) => ({
    policy: policy.name,
    quota: policy.quota,
    exceeded,
    remaining,
    reserved: reservation?.units,
    isPlanUnknown,
  }))
  return {
    outcome,
    refusedBy,
    told,
    fields: limitHeaders(states.map((state) => ({ ...state, resetMs: 1000 }))),
  }
}

function resetsOf(decision: Decision | undefined): number[] {
  return !decision || decision.outcome === 'unavailable' ? [] : decision.states.map(({ resetMs }) => resetMs)
}
