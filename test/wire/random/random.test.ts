import { expect, test } from 'vitest'
import { drive } from './driver.ts'
import { testSeed } from '../../support/random/seed.ts'

/*
 * Random clients, random backends, and the gateway between them, over HTTP/1.1, HTTPS and HTTP/2. `TEST_SEED` is the seed of everything;
 * `RANDOM_BATCH` is the first batch; `RANDOM_EXCHANGES` sets the number of exchanges. This run is short, half a batch for each of the four
 * patient gateways; `.ci/run` has 1,100 exchanges, `npm run test:fault` has 100,000.
 */

const seed = testSeed()
const firstBatch = Number(process.env['RANDOM_BATCH'] ?? 0)
const exchanges = Number(process.env['RANDOM_EXCHANGES'] ?? 600)

test(`${exchanges} random exchanges from seed ${seed} are answered as planned`, async () => {
  const driven = await drive({ seed, firstBatch, exchanges })
  console.log(`TEST_SEED=${seed}: ${driven.exchanges} exchanges in ${driven.batches} batches`)
  expect(driven.faults.join('\n')).toBe('')
}, 1_800_000)
