import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Decision } from '../../proxy/limits/limiter.ts'
import { delayMsOf } from '../../proxy/limits/waiting/delay-of.ts'
import { withoutDelay, type Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, reservationsOf } from '../support/limiter/decisions.ts'
import { expectInstants, openSubject, type Instant, type StartSubject } from '../support/limiter/subject.ts'
import { eventually } from '../support/wait/eventually.ts'

/** @param windowMs how long an empty bucket takes to fill */
function makeBucket(name: string, quota: number, windowMs: number, rest: Partial<Policy> = {}): Policy {
  return makePolicy(name, quota, windowMs, { algorithm: 'token-bucket', ...rest })
}

const failures = [{ first: 401, last: 401 }]

const policies = {
  instants: makeBucket('bucket.instants', 3, 3000),
  instantsAt4: makeBucket('bucket.instants-at-4', 3, 12_000),
  instantsAt16: makeBucket('bucket.instants-at-16', 3, 48_000),
  exact: makeBucket('bucket.exact', 37, 370_000_000),
  login: makeBucket('bucket.login', 5, 500_000, { countStatus: failures }),
  tokens: makeBucket('bucket.tokens', 1000, 1_000_000_000, {
    cost: { reserve: 100, settle: { kind: 'json', path: ['n'] } },
  }),
  delayed: makeBucket('bucket.delayed', 1, 100_000, { over: { delayMs: 300_000, waiting: 9 } }),
  delayedThirds: makeBucket('bucket.delayed-thirds', 3, 300_001, { over: { delayMs: 150_000, waiting: 9 } }),
  left: makeBucket('bucket.left', 1, 1000, { over: { delayMs: 60_000, waiting: 99 } }),
  shadow: makeBucket('bucket.shadow', 2, 200_000, { mode: 'shadow' }),
  narrow: makePolicy('bucket.narrow', 1, 600_000),
}

/** A bucket of 3 that regains one unit each second: the times of requests, in milliseconds from the first one, and the expected answers. */
const instants: readonly Instant[] = [
  { atMs: 0, outcome: 'allowed', remaining: 2, resetMs: 1000 },
  { atMs: 0, outcome: 'allowed', remaining: 1, resetMs: 1000 },
  { atMs: 300, outcome: 'allowed', remaining: 0, resetMs: 700 },
  { atMs: 300, outcome: 'refused', remaining: 0, resetMs: 700 },
  { atMs: 850, outcome: 'refused', remaining: 0, resetMs: 150 },
  { atMs: 1150, outcome: 'allowed', remaining: 0, resetMs: 850 },
  { atMs: 1150, outcome: 'refused', remaining: 0, resetMs: 850 },
  { atMs: 3150, outcome: 'allowed', remaining: 1, resetMs: 850 },
  { atMs: 3300, outcome: 'allowed', remaining: 0, resetMs: 700 },
  { atMs: 3400, outcome: 'refused', remaining: 0, resetMs: 600 },
]

/** The promises of every counter store about token buckets. The tests run one after another because they move the store's clock. */
export function describeBucketContract(name: string, start: StartSubject): void {
  describe(name, () => {
    const subject = openSubject(start, Object.values(policies))

    const ask = async (charges: ReturnType<typeof chargeAll>, replica = 0): Promise<Decision> => {
      const limiter = subject.limiters[replica % subject.limiters.length]
      if (!limiter) throw new RangeError('at least one limiter')
      return limiter.decide(charges)
    }

    async function usedBy(charges: ReturnType<typeof chargeAll>): Promise<number | undefined> {
      return (await subject.operations.inspect(charges))[0]?.used
    }

    test('a token bucket follows the table of instants', () =>
      expectInstants(subject, instants, policies, 0.01))

    test('exactly the bucket of many parallel requests passes, over all replicas', async () => {
      const charges = chargeAll(newClient(), [policies.exact])
      expect(countAllowed(await decideAtOnce(subject.limiters, 200, charges))).toBe(37)
      expect(await usedBy(charges)).toBe(37)
    })

    test('refunded units are in the bucket again', async () => {
      const charges = chargeAll(newClient(), [policies.login])
      const decisions = await decideAtOnce(subject.limiters, 50, charges)
      expect(countAllowed(decisions)).toBe(5)
      const reservations = decisions.flatMap(reservationsOf)
      expect(reservations).toHaveLength(5)
      for (const reservation of reservations.slice(0, 3)) subject.first.settle(reservation, 0)
      await eventually('two are used', async () => (await usedBy(charges)) === 2)
      expect(countAllowed(await decideAtOnce(subject.limiters, 50, charges))).toBe(3)
    })

    test('costs above the reservation are charged, below it refunded', async () => {
      const charges = chargeAll(newClient(), [policies.tokens])
      const settle = async (costUnits: number): Promise<void> => {
        for (const reservation of reservationsOf(await ask(charges)))
          subject.first.settle(reservation, costUnits)
      }
      await settle(40)
      await eventually('40 are used', async () => (await usedBy(charges)) === 40)
      await settle(860)
      await eventually('900 are used', async () => (await usedBy(charges)) === 900)
      expect((await ask(charges)).outcome).toBe('allowed')
      expect((await ask(charges)).outcome).toBe('refused')
    })

    test('a debt of any cost is kept, and its end fits into a structured header', async () => {
      const charges = chargeAll(newClient(), [policies.tokens])
      for (const reservation of reservationsOf(await ask(charges)))
        subject.first.settle(reservation, Number.MAX_SAFE_INTEGER)
      await eventually('all is used', async () => (await usedBy(charges)) === 1000)
      const refused = await ask(charges)
      if (refused.outcome !== 'refused') throw new Error(`the request was ${refused.outcome}`)
      const resetMs = refused.states[0]?.resetMs ?? 0
      expect(resetMs).toBeGreaterThan(1e12)
      // RFC 9651 section 3.3.1: an integer has at most 15 digits.
      expect(resetMs).toBeLessThan(1e15)
    })

    /** The number of turns of 100 s that a request has to wait for. */
    const turnsOf = (decision: Decision | undefined): number | undefined =>
      decision?.outcome === 'allowed' && decision.states[0]
        ? Math.round(delayMsOf(decision.states[0]) / 100_000)
        : undefined

    test('requests over the limit are told their turns, in order, and no more than fit into the delay', async () => {
      const charges = chargeAll(newClient(), [policies.delayed])
      const decisions: Decision[] = []
      for (let i = 0; i < 6; i++) decisions.push(await ask(charges, i))
      expect(decisions.map(turnsOf)).toEqual([0, 1, 2, 3, undefined, undefined])
      const atOnce = await decideAtOnce(subject.limiters, 12, chargeAll(newClient(), [policies.delayed]))
      expect(
        atOnce
          .map(turnsOf)
          .filter((turns) => turns !== undefined)
          .sort(),
      ).toEqual([0, 1, 2, 3])
    })

    test('a request without a place to wait is refused, and counts nothing', async () => {
      const client = newClient()
      const undelayed = chargeAll(client, [withoutDelay(policies.delayed)])
      expect(turnsOf(await ask(undelayed))).toBe(0)
      expect((await ask(undelayed)).outcome).toBe('refused')
      expect(turnsOf(await ask(chargeAll(client, [policies.delayed])))).toBe(1)
    })

    test('the last turn can be given back, and no other', async () => {
      const charges = chargeAll(newClient(), [policies.delayed])
      const decisions: Decision[] = []
      for (let i = 0; i < 4; i++) decisions.push(await ask(charges))
      const [, second, third, fourth] = decisions.flatMap(reservationsOf)
      if (!second || !third || !fourth) throw new Error('nothing was reserved')
      subject.first.settle(second, 0)
      subject.first.settle(third, 0)
      expect((await ask(charges)).outcome).toBe('refused')
      subject.first.settle(fourth, 0)
      await eventually('the last turn is free again', async () => turnsOf(await ask(charges)) === 3)
      expect((await ask(charges)).outcome).toBe('refused')
    })

    test('the last turn can be given back if turns are no whole number of microseconds apart', async () => {
      for (let client = 0; client < 20; client++) {
        const charges = chargeAll(newClient(), [policies.delayedThirds])
        const decisions: Decision[] = []
        for (let i = 0; i < 4; i++) decisions.push(await ask(charges))
        const last = decisions.flatMap(reservationsOf)[3]
        if (!last) throw new Error('nothing was reserved')
        expect((await ask(charges)).outcome).toBe('refused')
        subject.first.settle(last, 0)
        await eventually(
          'the last turn is free again',
          async () => (await ask(charges)).outcome === 'allowed',
        )
      }
    })

    test('all turns can be given back from the last one on, at any time', async () => {
      const charges = chargeAll(newClient(), [policies.left])
      const startedAtMs = performance.now()
      const decisions: Decision[] = []
      for (let i = 0; i < 61; i++) decisions.push(await ask(charges))
      const reservations = decisions.flatMap(reservationsOf)
      expect(reservations).toHaveLength(61)
      // Longer than the bucket takes to fill.
      if (subject.advance) subject.advance(1100)
      else await sleep(1100)
      const passedMs = (): number => (subject.advance ? 1100 : performance.now() - startedAtMs)
      // By the end, none of these turns has come even on a busy machine.
      for (const reservation of reservations.slice(21).reverse()) subject.first.settle(reservation, 0)
      await eventually('40 turns are free again', async () => {
        const [reading] = await subject.operations.inspect(charges)
        return passedMs() + (reading?.resetMs ?? Infinity) < 22_000
      })
    })

    test('a shadow rule takes only the units that the bucket has', async () => {
      const charges = chargeAll(newClient(), [policies.shadow])
      expect(countAllowed(await decideAtOnce(subject.limiters, 6, charges))).toBe(6)
      expect(await usedBy(charges)).toBe(2)
    })

    test('a request that another rule refuses takes nothing', async () => {
      const charges = chargeAll(newClient(), [policies.exact, policies.login, policies.narrow])
      expect((await ask(charges)).outcome).toBe('allowed')
      expect(await ask(charges)).toMatchObject({
        outcome: 'refused',
        states: [{ remaining: 36 }, { remaining: 4 }, {}],
      })
      expect((await subject.operations.inspect(charges)).map(({ used }) => used)).toEqual([1, 1, 1])
    })

    test('requests from before a reset give nothing back to the bucket after it', async () => {
      const charges = chargeAll(newClient(), [policies.login])
      const before = (await decideAtOnce(subject.limiters, 5, charges)).flatMap(reservationsOf)
      expect(before).toHaveLength(5)
      subject.advance?.(10)
      expect(await subject.operations.reset(charges)).toBe('done')
      subject.advance?.(10)
      expect(countAllowed(await decideAtOnce(subject.limiters, 5, charges))).toBe(5)
      for (const reservation of before) subject.first.settle(reservation, 0)
      // The counters have settled these once they have settled another one.
      const others = chargeAll(newClient(), [policies.login])
      for (const reservation of reservationsOf(await ask(others))) subject.first.settle(reservation, 0)
      await eventually('the other one is given back', async () => (await usedBy(others)) === 0)
      expect(await usedBy(charges)).toBe(5)
    })

    test('a reset by an operator fills the bucket again', async () => {
      const charges = chargeAll(newClient(), [policies.exact])
      await decideAtOnce(subject.limiters, 100, charges)
      expect(await subject.operations.reset(charges)).toBe('done')
      await eventually('all pass again', async () => (await ask(charges, 1)).outcome === 'allowed')
    })
  })
}
