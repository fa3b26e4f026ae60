import { expect, test } from 'vitest'
import { playLeaseHistory } from '../support/leases/lease-history.ts'
import type { Defect } from '../support/leases/model-gateway.ts'
import { runs } from '../support/random/runs.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * Leases on a simulated clock, with counters that know the exact counts. `TEST_SEED` is the seed of the first history, and each later one
 * uses the next number: 500 with `npm run test:fault`.
 */

const histories = runs(500)
const firstSeed = testSeed()

test(`${histories} random histories of leases from seed ${firstSeed} keep the promise`, async () => {
  const failed: string[] = []
  let requests = 0
  let decidedHere = 0
  for (let seed = firstSeed; seed < firstSeed + histories; seed++) {
    const history = await playLeaseHistory(seed)
    const [violation] = history.violations
    if (violation !== undefined) failed.push(`TEST_SEED=${seed}: ${violation}`)
    requests += history.requests
    decidedHere += history.decidedHere
  }
  expect(failed).toEqual([])
  // Otherwise the histories would show nothing about leases.
  expect(decidedHere / requests).toBeGreaterThan(0.2)
}, 600_000)

/** Leases that are wrong on purpose. */
const defects: Readonly<Record<string, { readonly defect?: Defect; readonly keepsLeased?: false }>> = {
  'gives back what requests have used': {
    defect: (store) => ({
      ...store,
      giveBack: (charge, lease) => store.giveBack(charge, lease, lease.units),
    }),
  },
  'gives back again what may have arrived': {
    defect: (store) => ({
      ...store,
      giveBack(...given) {
        store.giveBack(...given)
        store.giveBack(...given)
      },
    }),
  },
  'uses units after their window has ended': {
    defect: (store) => ({
      ...store,
      take: async (...asked) => {
        const lease = await store.take(...asked)
        return { ...lease, leftMs: lease.leftMs + 100 }
      },
    }),
  },
  'uses units that may not have been counted': {
    defect: (store) => ({
      ...store,
      take: (charge, wanted) =>
        store.take(charge, wanted).catch(() => ({
          units: wanted().units,
          remaining: 0,
          leftMs: 500,
          ticket: '',
          takenAtUs: '0',
        })),
    }),
  },
  'never gives back': { defect: (store) => ({ ...store, giveBack: () => undefined }) },
  'forgets units on lease at a reset': { keepsLeased: false },
}

test.for(Object.entries(defects))(
  'the judge finds a gateway that %s',
  { timeout: 120_000 },
  async ([, broken]) => {
    const found: string[] = []
    for (let seed = 1; found.length === 0 && seed <= 40; seed++)
      found.push(...(await playLeaseHistory(seed, broken)).violations)
    expect(found).not.toEqual([])
  },
)
