import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Decision } from '../../proxy/limits/limiter.ts'
import { withQuota } from '../../proxy/limits/algorithms/registry.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { expectInstants, openSubject, type Instant, type StartSubject } from '../support/limiter/subject.ts'

function makeSliding(name: string, quota: number, windowMs: number, rest: Partial<Policy> = {}): Policy {
  return makePolicy(name, quota, windowMs, { algorithm: 'sliding', ...rest })
}

const policies = {
  instants: makeSliding('sliding.instants', 3, 1000),
  instantsAt4: makeSliding('sliding.instants-at-4', 3, 4000),
  instantsAt16: makeSliding('sliding.instants-at-16', 3, 16_000),
  exact: makeSliding('sliding.exact', 37, 60_000),
  remaining: makeSliding('sliding.remaining', 50, 60_000),
  edge: makeSliding('sliding.edge', 2, 500),
  slow: makeSliding('sliding.slow', 4, 400),
  wide: makeSliding('sliding.wide', 100, 60_000),
  narrow: makeSliding('sliding.narrow', 7, 60_000),
  none: makeSliding('sliding.none', 0, 60_000),
  lowered: makeSliding('sliding.lowered', 3, 60_000),
  batch: makeSliding('sliding.batch', 4, 60_000, {
    partition: [{ kind: 'body', name: 'email', path: ['email'] }],
  }),
  shadow: makeSliding('sliding.shadow', 2, 60_000, { mode: 'shadow' }),
  fixedWide: makePolicy('fixed.wide', 100, 60_000),
  fixedNarrow: makePolicy('fixed.narrow', 7, 60_000),
}

/**
 * A client with 3 requests in any second: the times of its requests, in milliseconds from the first one, and the expected answers. A
 * request counts for exactly one second, regardless of earlier requests; refused requests do not count. The remaining quota grows when the
 * oldest counted request leaves the window.
 */
const instants: readonly Instant[] = [
  { atMs: 0, outcome: 'allowed', remaining: 2, resetMs: 1000 },
  { atMs: 0, outcome: 'allowed', remaining: 1, resetMs: 1000 },
  { atMs: 300, outcome: 'allowed', remaining: 0, resetMs: 700 },
  { atMs: 300, outcome: 'refused', remaining: 0, resetMs: 700 },
  { atMs: 850, outcome: 'refused', remaining: 0, resetMs: 150 },
  { atMs: 1100, outcome: 'allowed', remaining: 1, resetMs: 200 },
  { atMs: 1100, outcome: 'allowed', remaining: 0, resetMs: 200 },
  { atMs: 1150, outcome: 'refused', remaining: 0, resetMs: 150 },
  { atMs: 1450, outcome: 'allowed', remaining: 0, resetMs: 650 },
  { atMs: 2600, outcome: 'allowed', remaining: 2, resetMs: 1000 },
]

/** The promises of every counter store about sliding windows. The tests run one after another because they move the store's clock. */
export function describeSlidingContract(name: string, start: StartSubject): void {
  describe(name, () => {
    const subject = openSubject(start, Object.values(policies))

    async function decide(client: string, ...applied: Policy[]): Promise<Decision> {
      return subject.first.decide(chargeAll(client, applied))
    }

    async function pass(durationMs: number): Promise<void> {
      if (subject.advance) subject.advance(durationMs)
      else await sleep(durationMs)
    }

    test('under a quota that was lowered, more is left when as many requests as are too many have left', async () => {
      const client = newClient()
      const untilMore = async (policy: Policy): Promise<number> => {
        const decision = await decide(client, policy)
        return decision.outcome === 'refused' ? (decision.states[0]?.resetMs ?? NaN) : NaN
      }
      for (let asked = 0; asked < 2; asked++) await decide(client, policies.lowered)
      await pass(200)
      await decide(client, policies.lowered)
      // The third request, which came later than the first, has to leave the window.
      const untilThird = await untilMore(withQuota(policies.lowered, 1))
      expect(untilThird - (await untilMore(policies.lowered))).toBeGreaterThanOrEqual(190)
    })

    test('a batch is refused until as many requests as it needs have left', async () => {
      const charge = { policy: policies.batch, partitionKey: newClient() }
      const untilFits = async (units: number): Promise<number> => {
        const decision = await subject.first.decide([{ ...charge, units }])
        return decision.outcome === 'refused' ? (decision.states[0]?.resetMs ?? NaN) : NaN
      }
      for (const waitMs of [200, 200, 0]) {
        await subject.first.decide([charge])
        await pass(waitMs)
      }
      // Redis's clock goes on between the questions, which makes these differences larger.
      const [four, three, two] = [await untilFits(4), await untilFits(3), await untilFits(2)]
      expect(three - two).toBeGreaterThanOrEqual(190)
      expect(four - three).toBeGreaterThanOrEqual(190)
      // It never fits.
      expect(await untilFits(5)).toBe(60_000)
    })

    test(
      'a sliding window follows the table of instants',
      () => expectInstants(subject, instants, policies),
      120_000,
    )

    test('a request leaves the window exactly its length later, and no earlier', async () => {
      const { advance } = subject
      if (!advance) return // Real time cannot be stopped at an instant: test/property/sliding.test.ts gives Redis a clock.
      const client = newClient()
      const heard = []
      for (const stepMs of [0, 250, 249.75, 0.25, 0, 249.75, 0.25]) {
        advance(stepMs)
        heard.push((await decide(client, policies.edge)).outcome)
      }
      expect(heard).toEqual(['allowed', 'allowed', 'refused', 'allowed', 'refused', 'refused', 'allowed'])
    })

    test('the reset of a sliding window is when one more request is allowed', async () => {
      const client = newClient()
      for (let i = 0; i < 3; i++) {
        await decide(client, policies.slow)
        await pass(40)
      }
      for (let i = 0; i < 3; i++) {
        let decision = await decide(client, policies.slow)
        while (decision.outcome === 'allowed') decision = await decide(client, policies.slow)
        await pass(decision.outcome === 'refused' ? (decision.states[0]?.resetMs ?? NaN) : NaN)
        if (!subject.advance) await pass(2)
        expect(await decide(client, policies.slow)).toMatchObject({ outcome: 'allowed' })
      }
    })

    test('exactly the quota of 500 parallel requests passes in a sliding window', async () => {
      const charges = chargeAll(newClient(), [policies.exact])
      const decisions = await decideAtOnce(subject.limiters, 500, charges)
      expect(countAllowed(decisions)).toBe(37)
      expect(decisions.filter(({ outcome }) => outcome === 'refused')).toHaveLength(463)
    })

    test('parallel requests in a sliding window each get a different remaining number', async () => {
      const charges = chargeAll(newClient(), [policies.remaining])
      const decisions = await decideAtOnce(subject.limiters, 50, charges)
      const remaining = decisions.map((decision) =>
        decision.outcome === 'allowed' ? decision.states[0]?.remaining : undefined,
      )
      expect(remaining.toSorted((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: 50 }, (_, i) => i),
      )
    })

    test.each([
      ['sliding', 'sliding', policies.wide, policies.narrow],
      ['sliding', 'fixed', policies.wide, policies.fixedNarrow],
      ['fixed', 'sliding', policies.fixedWide, policies.narrow],
    ])(
      'a request does not count under a wide %s rule if a narrow %s one refuses it',
      async (_w, _n, wide, narrow) => {
        const client = newClient()
        const decisions = await decideAtOnce(subject.limiters, 300, chargeAll(client, [wide, narrow]))
        expect(countAllowed(decisions)).toBe(7)
        expect(decisions.every((d) => d.outcome !== 'refused' || d.refusedBy.name === narrow.name)).toBe(true)
        expect(await decide(client, wide)).toMatchObject({ states: [{ remaining: 100 - 7 - 1 }] })
      },
    )

    test('stores no time for a refused request, even if it would be the only one', async () => {
      const client = newClient()
      for (let i = 0; i < 3; i++) {
        expect(await decide(client, policies.edge, policies.none)).toMatchObject({
          outcome: 'refused',
          refusedBy: { name: 'sliding.none' },
          states: [
            { exceeded: false, remaining: 2 },
            { exceeded: true, remaining: 0 },
          ],
        })
      }
      expect(await decide(client, policies.edge)).toMatchObject({ states: [{ remaining: 1, resetMs: 500 }] })
    })

    test('an exceeded sliding window in shadow is reported, and the request passes', async () => {
      const client = newClient()
      const exceeded = []
      for (let i = 0; i < 4; i++) {
        const decision = await decide(client, policies.shadow, policies.narrow)
        exceeded.push(decision.outcome === 'allowed' && decision.states[0]?.exceeded)
      }
      expect(exceeded).toEqual([false, false, true, true])
      expect(await decide(client, policies.narrow)).toMatchObject({ states: [{ remaining: 7 - 4 - 1 }] })
    })
  })
}
