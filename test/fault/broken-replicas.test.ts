import { test } from 'vitest'
import { startAddingAgain, startForgetting, startReadThenWrite, startResending } from './broken-replicas.ts'
import type { Fault } from './faults.ts'
import { playHistory } from './random-history.ts'
import type { Replica } from './stage.ts'

/*
 * The random histories find no violation. That proves something only if they also find real defects, in few attempts, and report the actual
 * defect.
 */

/** On a busy machine the bounds are wider, so more attempts are needed. */
const ATTEMPTS = 40

const none: readonly Fault[] = []
const lostReplies: readonly Fault[] = Array.from({ length: 6 }, (_, i) => {
  return { site: i % 2, kind: 'swallow replies', startMs: 20 + 80 * i, durationMs: 25 }
})
const outage: readonly Fault[] = [{ site: 0, kind: 'refuse', startMs: 20, durationMs: 200 }]

const broken: readonly [string, (url: string) => Replica, readonly Fault[], RegExp][] = [
  ['reads, then writes', startReadThenWrite, none, /allowed, where at most|when the quota was used up/],
  [
    'sends again after a reconnect',
    startResending,
    lostReplies,
    /\(\d+, closed\): (\d+ counted, but|refused after)/,
  ],
  [
    'adds again what it admitted alone',
    startAddingAgain,
    outage,
    /\(\d+, local\): (\d+ counted, but|refused after)/,
  ],
  [
    'forgets what it admitted alone',
    startForgetting,
    outage,
    /\(\d+, local\): (\d+ counted, but|allowed when)/,
  ],
]

test.concurrent.for(broken)(
  'the judge finds a limiter that %s',
  async ([, start, faults, wrong], { expect }) => {
    const found: string[] = []
    for (let seed = 1; found.length === 0 && seed <= ATTEMPTS; seed++) {
      const { violations } = await playHistory(seed, start, () => [...faults])
      found.push(...violations.filter((violation) => wrong.test(violation)))
    }
    expect(found).not.toEqual([])
  },
)
