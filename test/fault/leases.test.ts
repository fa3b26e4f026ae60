import { expect, test } from 'vitest'
import type { Verdict } from './random-history.ts'
import { playLeasedHistory, startLeasingReplica, tellLeased, type LeasingReplica } from './leased-history.ts'
import { playHistories, timeLimitMs } from './play-histories.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * Histories of leases on a failing Redis. `TEST_SEED` is the seed of the first history, and each later one uses the next number.
 * `FAULT_HISTORIES` is their number: 500 with `npm run test:fault`. `test/property/leases.test.ts` plays more kinds of events, on a
 * simulated clock.
 */

const firstSeed = testSeed()
const histories = Number(process.env['FAULT_HISTORIES'] ?? 8)

test(
  `${histories} random histories of leases from seed ${firstSeed} keep the promise`,
  async () => {
    const play = (seed: number): Promise<Verdict> => playLeasedHistory(seed)
    const failed = await playHistories({ firstSeed, histories, play })
    expect(failed.map(tellLeased)).toEqual([])
  },
  timeLimitMs(histories),
)

test('a reset that only deletes the counter is found', async () => {
  const startWrong = (url: string): LeasingReplica => {
    const replica = startLeasingReplica(url)
    return {
      ...replica,
      async reset(client, policies) {
        await replica.reset(client, policies)
        await replica.deleteCounters(client, policies)
      },
    }
  }
  const found: string[] = []
  for (let seed = 1; found.length === 0 && seed <= 60; seed++)
    found.push(...(await playLeasedHistory(seed, startWrong)).violations)
  expect(found).not.toEqual([])
})
