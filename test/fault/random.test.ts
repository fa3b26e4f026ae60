import { expect, test } from 'vitest'
import { startRedisLimiter } from '../support/limiter/limiters.ts'
import { playHistory, tellVerdict, type Verdict } from './random-history.ts'
import { playHistories, timeLimitMs } from './play-histories.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * Histories of random faults. `TEST_SEED` is the seed of the first history, and each later one uses the next number. `FAULT_HISTORIES` is
 * their number: 8 with `npm test`, 16 with `.ci/run`, 500 with the long tests.
 */

const firstSeed = testSeed()
const histories = Number(process.env['FAULT_HISTORIES'] ?? 8)

test(
  `${histories} random histories from seed ${firstSeed} keep the promise`,
  async () => {
    const play = (seed: number): Promise<Verdict> => playHistory(seed, (url) => startRedisLimiter(url, 100))
    const failed = await playHistories({ firstSeed, histories, play })
    expect(failed.map(tellVerdict)).toEqual([])
  },
  timeLimitMs(histories),
)
