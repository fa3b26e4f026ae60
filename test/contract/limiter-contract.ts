import { describe, expect, test } from 'vitest'
import type { Limiter } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { expectInstants, openSubject, type Instant, type StartSubject } from '../support/limiter/subject.ts'
import { describeAnswersContract } from './answers-contract.ts'
import { describeBucketContract } from './bucket-contract.ts'
import { describeCalendarContract } from './calendar-contract.ts'
import { describeOperationsContract } from './operations-contract.ts'
import { describeReadingsContract } from './readings-contract.ts'
import { describeReservationContract } from './reservation-contract.ts'
import { describeSlidingContract } from './sliding-contract.ts'

const policies = {
  instants: makePolicy('instants', 3, 1000),
  instantsAt4: makePolicy('instants-at-4', 3, 4000),
  instantsAt16: makePolicy('instants-at-16', 3, 16_000),
  exact: makePolicy('exact', 37, 60_000),
  remaining: makePolicy('remaining', 50, 60_000),
  clients: makePolicy('clients', 11, 60_000),
  wide: makePolicy('wide', 100, 60_000),
  narrow: makePolicy('narrow', 7, 60_000),
  first: makePolicy('first', 1, 30_000),
  second: makePolicy('second', 1, 60_000),
  fresh: makePolicy('fresh', 5, 45_000),
  open: makePolicy('open', 2, 60_000),
  shut: makePolicy('shut', 1, 60_000),
  shadow: makePolicy('shadow', 2, 60_000, { mode: 'shadow' }),
  enforced: makePolicy('enforced', 4, 60_000),
  shadowOfThree: makePolicy('shadow-of-three', 3, 60_000, { mode: 'shadow' }),
  elsewhere: makePolicy('elsewhere', 2, 60_000, { over: { route: 'page' } }),
  byAddress: makePolicy('by-address', 3, 60_000),
  byKey: makePolicy('by-key', 2, 60_000),
  none: makePolicy('none', 0, 60_000),
  a: makePolicy('a', 2, 60_000),
  'a.b': makePolicy('a.b', 2, 60_000),
  b: makePolicy('b', 2, 60_000),
  proto: makePolicy('__proto__', 2, 60_000),
  constructor: makePolicy('constructor', 2, 60_000),
}

/**
 * A client with 3 requests a window: the times of its requests, in milliseconds from the first one, and the expected answers. The window
 * begins with the first request, and refused requests do not extend it.
 */
const instants: readonly Instant[] = [
  { atMs: 0, outcome: 'allowed', remaining: 2, resetMs: 1000 },
  { atMs: 0, outcome: 'allowed', remaining: 1, resetMs: 1000 },
  { atMs: 300, outcome: 'allowed', remaining: 0, resetMs: 700 },
  { atMs: 300, outcome: 'refused', remaining: 0, resetMs: 700 },
  { atMs: 600, outcome: 'refused', remaining: 0, resetMs: 400 },
  { atMs: 900, outcome: 'refused', remaining: 0, resetMs: 100 },
  { atMs: 1100, outcome: 'allowed', remaining: 2, resetMs: 1000 },
  { atMs: 1900, outcome: 'allowed', remaining: 1, resetMs: 200 },
  { atMs: 2200, outcome: 'allowed', remaining: 2, resetMs: 1000 },
]

/** The promises of every counter store. */
export function describeLimiterContract(name: string, start: StartSubject): void {
  describe.concurrent(name, () => {
    const subject = openSubject(start, Object.values(policies))

    test(
      'a fixed window follows the table of instants',
      () => expectInstants(subject, instants, policies),
      120_000,
    )

    test('exactly the quota of 500 parallel requests passes', async () => {
      const charges = chargeAll(newClient(), [policies.exact])
      const decisions = await decideAtOnce(subject.limiters, 500, charges)
      expect(countAllowed(decisions)).toBe(37)
      expect(decisions.filter(({ outcome }) => outcome === 'refused')).toHaveLength(463)
    })

    test('parallel requests of one client each get a different remaining number', async () => {
      const charges = chargeAll(newClient(), [policies.remaining])
      const decisions = await decideAtOnce(subject.limiters, 50, charges)
      const remaining = decisions.map((decision) =>
        decision.outcome === 'allowed' ? decision.states[0]?.remaining : undefined,
      )
      expect(remaining.toSorted((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: 50 }, (_, i) => i),
      )
    })

    test('20 clients that ask in parallel are counted apart', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () =>
          decideAtOnce(subject.limiters, 40, chargeAll(newClient(), [policies.clients])),
        ),
      )
      expect(answers.map(countAllowed)).toEqual(Array.from({ length: 20 }, () => 11))
    })

    test('parallel requests that the narrow rule refuses do not count under the wide one', async () => {
      const client = newClient()
      const { wide, narrow } = policies
      const decisions = await decideAtOnce(subject.limiters, 300, chargeAll(client, [wide, narrow]))
      expect(countAllowed(decisions)).toBe(7)
      expect(decisions.every((d) => d.outcome !== 'refused' || d.refusedBy.name === 'narrow')).toBe(true)
      const decision = await subject.first.decide(chargeAll(client, [wide]))
      expect(decision).toMatchObject({ outcome: 'allowed', states: [{ remaining: 100 - 7 - 1 }] })
    })

    test('a refusal names the first policy over its limit and has the states of the others', async () => {
      const client = newClient()
      const { first, second, fresh } = policies
      await subject.first.decide(chargeAll(client, [second]))
      await subject.first.decide(chargeAll(client, [first]))
      const decision = await subject.first.decide(chargeAll(client, [fresh, first, second]))
      expect(decision).toMatchObject({
        outcome: 'refused',
        refusedBy: { name: 'first' },
        states: [
          { exceeded: false, remaining: 5, resetMs: 45_000 },
          { exceeded: true, remaining: 0 },
          { exceeded: true, remaining: 0 },
        ],
      })
    })

    test('a refused request begins no window', async () => {
      const client = newClient()
      const { open, shut } = policies
      await subject.first.decide(chargeAll(client, [shut]))
      for (let i = 0; i < 3; i++) await subject.first.decide(chargeAll(client, [open, shut]))
      expect(await subject.first.decide(chargeAll(client, [open]))).toMatchObject({
        outcome: 'allowed',
        states: [{ remaining: 1, resetMs: 60_000 }],
      })
    })

    test.each([
      ['an exceeded shadow policy is reported, and the request passes', policies.shadow],
      [
        'a policy that sends requests to a route refuses nothing, and counts under the other policies',
        policies.elsewhere,
      ],
    ])('%s', async (_, lenient) => {
      const charges = chargeAll(newClient(), [lenient, policies.enforced])
      const seen = []
      for (let i = 0; i < 5; i++) seen.push(await subject.first.decide(charges))
      const state = (exceeded: boolean, remaining: number): object => ({ exceeded, remaining })
      expect(seen).toMatchObject([
        { outcome: 'allowed', states: [state(false, 1), state(false, 3)] },
        { outcome: 'allowed', states: [state(false, 0), state(false, 2)] },
        { outcome: 'allowed', states: [state(true, 0), state(false, 1)] },
        { outcome: 'allowed', states: [state(true, 0), state(false, 0)] },
        { outcome: 'refused', refusedBy: { name: 'enforced' }, states: [state(true, 0), state(true, 0)] },
      ])
    })

    test('a refused request does not count under a shadow policy', async () => {
      const client = newClient()
      const { shadowOfThree: shadow, shut } = policies
      for (let i = 0; i < 4; i++) await subject.first.decide(chargeAll(client, [shadow, shut]))
      expect(await subject.first.decide(chargeAll(client, [shadow]))).toMatchObject({
        outcome: 'allowed',
        states: [{ exceeded: false, remaining: 1 }],
      })
    })

    test('the rules of one request each count a client of their own', async () => {
      const address = newClient()
      const { byAddress, byKey } = policies
      const both = (key: string): Parameters<Limiter['decide']>[0] => [
        { policy: byAddress, partitionKey: address },
        { policy: byKey, partitionKey: `key:${address}:${key}` },
      ]
      const outcomes = []
      for (const key of ['a', 'a', 'a', 'b', 'b'])
        outcomes.push((await subject.first.decide(both(key))).outcome)
      expect(outcomes).toEqual(['allowed', 'allowed', 'refused', 'allowed', 'refused'])
    })

    test('policies and clients are not mixed up if their joined names are equal', async () => {
      const client = newClient()
      const pairs: [Policy, string][] = [
        [policies.a, client],
        [policies['a.b'], client],
        [policies.a, `${client}:a`],
        [policies.a, `${client}}:a`],
        [policies.b, `${client}:a.`],
        [policies.a, `${client}\u00e9`],
        [policies.a, `${client}\u{1f600}`],
        [policies.a, `${client}${'x'.repeat(300)}`],
        [policies.a, `${client}${'x'.repeat(301)}`],
        [policies.proto, client],
        [policies.constructor, '__proto__'],
      ]
      for (const [policy, partitionKey] of pairs) {
        const decision = await subject.first.decide([{ policy, partitionKey }])
        expect(decision, `${policy.name} ${partitionKey}`).toMatchObject({ states: [{ remaining: 1 }] })
      }
    })

    test('a quota of 0 refuses every request', async () => {
      const charges = chargeAll(newClient(), [policies.none])
      for (let i = 0; i < 3; i++)
        expect(await subject.first.decide(charges)).toMatchObject({ outcome: 'refused' })
    })
  })

  describeOperationsContract(name, start)
  describeSlidingContract(`${name}, sliding windows`, start)
  describeCalendarContract(`${name}, windows of the calendar`, start)
  describeBucketContract(`${name}, token buckets`, start)
  describeReservationContract(`${name}, reservations`, start)
  describeReadingsContract(`${name}, several clients under one policy`, start)
  describeAnswersContract(`${name}, answers`, start)
}
