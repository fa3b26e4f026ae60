import { expect, test } from 'vitest'
import { startRedisLimiter } from '../support/limiter/limiters.ts'
import { playHistory, tellVerdict, type Verdict } from './random-history.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * Histories of random faults. `TEST_SEED` is the seed of the first, and each after it has the next number;
 * `FAULT_HISTORIES` says how many: 500 unless told otherwise.
 */

const firstSeed = testSeed()
const histories = Number(process.env['FAULT_HISTORIES'] ?? 16)
const AT_ONCE = Math.min(8, histories)

test(`${histories} random histories from seed ${firstSeed} keep the promise`, async () => {
  let next = firstSeed
  const failed: Verdict[] = []
  const playOn = async (): Promise<void> => {
    while (next < firstSeed + histories) {
      const seed = next++
      const verdict = await playHistory(seed, (url) => startRedisLimiter(url, 100))
      if (verdict.violations.length > 0) failed.push(verdict)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, playOn))
  expect(failed.map(tellVerdict)).toEqual([])
}, 900_000)
