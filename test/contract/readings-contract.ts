import { describe, expect, test } from 'vitest'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { openSubject, type StartSubject } from '../support/limiter/subject.ts'

const policies = {
  fixed: makePolicy('readings.fixed', 5, 60_000),
  sliding: makePolicy('readings.sliding', 5, 60_000, { algorithm: 'sliding' }),
}

/** The promises of every counter store about a request that one policy counts for several clients. */
export function describeReadingsContract(name: string, start: StartSubject): void {
  describe(name, () => {
    const subject = openSubject(start, Object.values(policies))

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
