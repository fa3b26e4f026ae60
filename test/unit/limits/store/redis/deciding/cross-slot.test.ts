import { expect, test } from 'vitest'
import { askAcrossSlots } from '../../../../../../proxy/limits/store/redis/deciding/cross-slot.ts'
import type { Charge } from '../../../../../../proxy/limits/limiter.ts'
import { makePolicy } from '../../../../../support/limiter/charges.ts'
import { passes } from '../../../../../support/wait/passes.ts'

const byAddress: Charge = { policy: makePolicy('by-address', 5, 60_000), partitionKey: 'a' }
const byKey: Charge = { policy: makePolicy('by-key', 5, 60_000), partitionKey: 'k' }
const sliding: Charge = {
  policy: makePolicy('sliding', 5, 60_000, { algorithm: 'sliding' }),
  partitionKey: 'a',
}

type Asked = Promise<readonly unknown[]>

/** Asks with the given answer for each partition key's node. Resolves with the refunds once everything is settled. */
async function ask(
  charges: readonly Charge[],
  answers: Readonly<Record<string, Asked>>,
): Promise<{ outcome: unknown; givenBack: unknown[] }> {
  const givenBack: unknown[] = []
  const outcome = await askAcrossSlots(charges, {
    askNode: ([charge]) => answers[charge?.partitionKey ?? ''] ?? Promise.resolve([]),
    giveBack: ({ charge, leftMs, countedAt }) =>
      Promise.resolve(givenBack.push([charge.policy.name, leftMs, countedAt])),
    readPlan: () => Promise.resolve(''),
    split: () => undefined,
  }).catch((error: unknown) => error)
  await Promise.allSettled(Object.values(answers))
  await new Promise((resolve) => setImmediate(resolve))
  return { outcome, givenBack }
}

const lost = new Error('Connection is closed.')

test('the counts of one node are refunded if another fails', async () => {
  const { outcome, givenBack } = await ask([byAddress, sliding, byKey], {
    a: Promise.resolve([4, 60_000, 4, 60_000, 123]),
    k: Promise.reject(lost),
  })
  expect(outcome).toBe(lost)
  expect(givenBack).toEqual([
    ['by-address', 60_000, 123],
    ['sliding', 60_000, 123],
  ])
})

test('a count that arrives after the failure is refunded', async () => {
  const { outcome, givenBack } = await ask([byAddress, byKey], {
    a: passes(20).then(() => [4, 60_000]),
    k: Promise.reject(lost),
  })
  expect(outcome).toBe(lost)
  expect(givenBack).toEqual([['by-address', 60_000, undefined]])
})

test('the counts of one node are refunded if another cannot decide', async () => {
  const { outcome, givenBack } = await ask([byAddress, byKey], {
    a: Promise.resolve([4, 60_000]),
    k: Promise.resolve(['OOM command not allowed', 0]),
  })
  expect(outcome).toEqual([5, 60_000, 'OOM command not allowed', 0])
  expect(givenBack).toEqual([['by-address', 60_000, undefined]])
})

test('a part that is over its quota refunds nothing, and without failures nothing is refunded', async () => {
  const over = await ask([byAddress, byKey], { a: Promise.resolve([-1, 60_000]), k: Promise.reject(lost) })
  expect(over.givenBack).toEqual([])
  const well = await ask([byAddress, byKey], { a: Promise.resolve([4, 1]), k: Promise.resolve([3, 2]) })
  expect(well).toEqual({ outcome: [4, 1, 3, 2], givenBack: [] })
})
