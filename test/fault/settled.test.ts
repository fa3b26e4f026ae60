import { expect, test } from 'vitest'
import type { Reservation } from '../../proxy/limits/limiter.ts'
import { startRedisLimiter } from '../support/limiter/limiters.ts'
import type { Verdict } from './random-history.ts'
import { playSettledHistory, tellSettled } from './settled-history.ts'
import type { Replica } from './stage.ts'
import { playHistories, timeLimitMs } from './play-histories.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * Histories of reservations, settlements, crashes between the two, and random faults. `TEST_SEED` is the seed of the first history, and
 * each later one uses the next number. `FAULT_HISTORIES` is their number: 500 with `npm run test:fault`.
 */

const firstSeed = testSeed()
const histories = Number(process.env['FAULT_HISTORIES'] ?? 8)

const start = (url: string): Replica => startRedisLimiter(url, 100)

test(
  `${histories} random histories of reservations from seed ${firstSeed} keep the promise`,
  async () => {
    const play = (seed: number): Promise<Verdict> => playSettledHistory(seed, start)
    const failed = await playHistories({ firstSeed, histories, play })
    expect(failed.map(tellSettled)).toEqual([])
  },
  timeLimitMs(histories),
)

type Settle = (reservation: Reservation, cost: number) => void

/** A limiter that settles wrongly. */
function startBroken(url: string, change: (settle: Settle) => Settle): Replica {
  const limiter = start(url)
  return { ...limiter, settle: change((...settlement) => limiter.settle(...settlement)) }
}

const laterWindow = (reservation: Reservation): Reservation => {
  const { ticket, charge } = reservation
  return charge.policy.algorithm === 'fixed'
    ? { ...reservation, ticket: String(Number(ticket) + charge.policy.windowMs) }
    : reservation
}

const broken: readonly [string, (url: string) => Replica, RegExp][] = [
  [
    'settles twice',
    (url) =>
      startBroken(url, (settle) => (reservation, cost) => {
        settle(reservation, cost)
        settle(reservation, cost)
      }),
    /counted, where at least|in use at/,
  ],
  [
    'forgets to settle',
    (url) => startBroken(url, () => () => undefined),
    /login.*: \d+ counted, where at most/,
  ],
  [
    'gives back to the next window',
    (url) => startBroken(url, (settle) => (reservation, cost) => settle(laterWindow(reservation), cost)),
    /counted in a window with/,
  ],
  [
    'never ends a request in flight',
    (url) =>
      startBroken(url, (settle) => (reservation, cost) => {
        if (reservation.charge.policy.algorithm !== 'concurrency') settle(reservation, cost)
      }),
    /exports.*: \d+ counted, where at most 0/,
  ],
]

/** On a busy machine the bounds are wider, so more attempts are needed. */
const ATTEMPTS = 60

test.concurrent.for(broken)(
  'the judge finds a limiter that %s, with settled costs',
  async ([, startIt, wrong], { expect }) => {
    const found: string[] = []
    for (let seed = 1; found.length === 0 && seed <= ATTEMPTS; seed++) {
      const { violations } = await playSettledHistory(seed, startIt, () => [])
      found.push(...violations.filter((violation) => wrong.test(violation)))
    }
    expect(found).not.toEqual([])
  },
)
