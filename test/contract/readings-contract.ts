import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Policy } from '../../proxy/policy.ts'
import { countAllowed, decideAtOnce, makePolicy, newClient } from '../support/limiter/limiters.ts'
import type { LimiterSubject } from './limiter-contract.ts'

const policies = {
  fixed: makePolicy('readings.fixed', 5, 60_000),
  sliding: makePolicy('readings.sliding', 5, 60_000, { algorithm: 'sliding' }),
}

/** The promises of every counter store about a request that one policy counts for several clients. */
export function describeReadingsContract(
  name: string,
  start: (policies: readonly Policy[]) => Promise<LimiterSubject>,
): void {
  describe(name, () => {
    let subject: LimiterSubject

    beforeAll(async () => {
      subject = await start(Object.values(policies))
    })
    afterAll(() => subject.close())

    test.each(Object.values(policies))(
      '$name: each client that the request may be of is counted, and is refused if one of them is over its limit',
      async (policy) => {
        const [one, two] = [newClient(), newClient()]
        const forBoth = [one, two].map((partitionKey) => ({ policy, partitionKey }))
        const forOne = forBoth.slice(0, 1)
        const forTwo = forBoth.slice(1)
        expect(countAllowed(await decideAtOnce(subject.limiters, 3, forTwo))).toBe(3)
        expect(countAllowed(await decideAtOnce(subject.limiters, 20, forBoth))).toBe(2)
        const [limiter] = subject.limiters
        const refusal = await limiter?.decide(forBoth)
        expect(refusal).toMatchObject({
          outcome: 'refused',
          refusedBy: policy,
          states: [
            { exceeded: false, remaining: 3 },
            { exceeded: true, remaining: 0 },
          ],
        })
        expect(countAllowed(await decideAtOnce(subject.limiters, 20, forOne))).toBe(3)
        expect(countAllowed(await decideAtOnce(subject.limiters, 20, forTwo))).toBe(0)
      },
    )
  })
}
