import { describe, expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { openSubject, type StartSubject } from '../support/limiter/subject.ts'
import { eventually } from '../support/wait/eventually.ts'

const fixed = makePolicy('operated-fixed', 5, 60_000)
const sliding = makePolicy('operated-sliding', 5, 60_000, { algorithm: 'sliding' })
const shadow = makePolicy('operated-shadow', 2, 60_000, { mode: 'shadow' })

/** The promises of every store about an operator's questions. */
export function describeOperationsContract(name: string, start: StartSubject): void {
  describe.concurrent(`${name}, asked by an operator`, () => {
    const subject = openSubject(start, [fixed, sliding, shadow])

    test.each([fixed, sliding])(
      'shows the full quota of a client without a window ($name)',
      async (policy) => {
        expect(await subject.operations.inspect(chargeAll(newClient(), [policy]))).toEqual([
          { policy, source: 'store', used: 0, resetMs: undefined },
        ])
      },
    )

    test.each([fixed, sliding])(
      'an operator sees the used quota, and nothing is counted ($name)',
      async (policy) => {
        const charges = chargeAll(newClient(), [policy])
        await decideAtOnce(subject.limiters, 3, charges)
        for (let asked = 0; asked < 10; asked++) {
          const [state] = await subject.operations.inspect(charges)
          expect(state).toMatchObject({ policy, source: 'store', used: 3 })
          expect(state?.resetMs).toBeGreaterThan(55_000)
          expect(state?.resetMs).toBeLessThanOrEqual(60_000)
        }
        expect(countAllowed(await decideAtOnce(subject.limiters, 10, charges))).toBe(2)
        expect(await subject.operations.inspect(charges)).toMatchObject([{ used: 5 }])
      },
    )

    test.each([fixed, sliding])(
      'a reset gives exactly the quota again, in every replica ($name)',
      async (policy) => {
        const charges = chargeAll(newClient(), [policy])
        expect(countAllowed(await decideAtOnce(subject.limiters, 30, charges))).toBe(5)
        expect(await subject.operations.reset(charges)).toBe('done')
        expect(await subject.operations.inspect(charges)).toMatchObject([{ used: 0 }])
        let allowed = 0
        for (const limiter of subject.limiters) {
          await eventually('it has heard of the reset', async () =>
            expect((await limiter.decide(charges)).outcome).toBe('allowed'),
          )
          allowed += 1
        }
        expect(allowed + countAllowed(await decideAtOnce(subject.limiters, 30, charges))).toBe(5)
      },
    )

    test('resets one client under the named policies, and no other client', async () => {
      const [one, other] = [newClient(), newClient()]
      await Promise.all(
        [one, other].map((client) =>
          decideAtOnce(subject.limiters, 3, chargeAll(client, [fixed, sliding, shadow])),
        ),
      )
      expect(await subject.operations.reset(chargeAll(one, [fixed, shadow]))).toBe('done')
      const used = async (client: string): Promise<unknown[]> => {
        const states = await subject.operations.inspect(chargeAll(client, [fixed, sliding, shadow]))
        return states.map((state) => state.used)
      }
      expect(await used(one)).toEqual([0, 3, 0])
      expect(await used(other)).toEqual([3, 3, 2])
    })

    test('resets a client without counts', async () => {
      expect(await subject.operations.reset(chargeAll(newClient(), [fixed, sliding]))).toBe('done')
    })
  })
}
