import { expect, test } from 'vitest'
import { playHistories, timeLimitMs } from '../../fault/play-histories.ts'

const kept = (seed: number) => ({ seed, faults: [], violations: [] as string[] })

test('each history is played once, from the first seed on', async () => {
  const played: number[] = []
  const play = (seed: number) => {
    played.push(seed)
    return Promise.resolve(kept(seed))
  }
  expect(await playHistories({ firstSeed: 7, histories: 20, play })).toEqual([])
  expect(played).toEqual(Array.from({ length: 20 }, (_, index) => 7 + index))
})

test('histories that violate the promise are reported, whatever the others do', async () => {
  const play = (seed: number) =>
    Promise.resolve({ ...kept(seed), violations: seed % 5 === 0 ? ['too many'] : [] })
  const failed = await playHistories({ firstSeed: 1, histories: 20, play })
  expect(failed.map(({ seed }) => seed)).toEqual([5, 10, 15, 20])
})

test('a history that hangs is told by its seed, and the others are played', async () => {
  const played: number[] = []
  const play = (seed: number) => {
    played.push(seed)
    return seed === 3 ? new Promise<never>(() => undefined) : Promise.resolve(kept(seed))
  }
  const failed = await playHistories({ firstSeed: 1, histories: 12, play }, 20)
  expect(failed).toEqual([{ seed: 3, faults: [], violations: ['it did not end in 20 ms'] }])
  expect(played).toHaveLength(12)
})

test('the timeout of a test of histories is longer than all of its histories may take', () => {
  expect(timeLimitMs(500)).toBeGreaterThan((500 / 8) * 120_000)
})
