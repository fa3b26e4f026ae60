import { describe, expect, test } from 'vitest'
import type { Attempt, History } from './history.ts'
import { judge } from './judge.ts'

/*
 * The judge is only as good as the violations it finds. Each history here is written by hand, under a rule of 2 requests in 1000 ms, with
 * its violation.
 */

type Row = [sentMs: number, answeredMs: number, outcome: Attempt['outcome'], rest?: Partial<Attempt>]

function historyOf(rows: readonly Row[], rest: Partial<History> = {}): History {
  return {
    rule: { quota: 2, windowMs: 1000, onStoreError: 'local' },
    attempts: rows.map(([sentMs, answeredMs, outcome, more]) => ({
      replica: 0,
      sentMs,
      answeredMs,
      outcome,
      asked: true,
      ...more,
    })),
    troubles: [],
    losses: [],
    ...rest,
  }
}

const trouble = { replica: 0, fromMs: 100, untilMs: 500 }
const other = { replica: 1 }
const atOnce = { asked: false }
const closed = { quota: 2, windowMs: 1000, onStoreError: 'closed' } as const
const open = { quota: 2, windowMs: 1000, onStoreError: 'open' } as const

const sound: readonly [string, History][] = [
  [
    'the quota, then refusals',
    historyOf([
      [0, 1, 'allowed'],
      [2, 3, 'allowed'],
      [4, 5, 'refused'],
    ]),
  ],
  [
    'a refusal that overlaps the request that used up the quota',
    historyOf([
      [0, 1, 'allowed'],
      [2, 4, 'refused'],
      [3, 9, 'allowed'],
    ]),
  ],
  [
    'a window after the other',
    historyOf([
      [0, 1, 'allowed'],
      [2, 3, 'allowed'],
      [990, 991, 'refused'],
      [1010, 1011, 'allowed'],
      [1900, 1901, 'allowed'],
      [1990, 1991, 'refused'],
      [2100, 2101, 'allowed'],
    ]),
  ],
  [
    'requests at the edge of two windows, whichever they were in',
    historyOf([
      [0, 20, 'allowed'],
      [5, 21, 'allowed'],
      [998, 1015, 'allowed'],
      [1018, 1030, 'refused'],
      [1040, 1050, 'allowed'],
      [1100, 1101, 'refused'],
    ]),
  ],
  [
    'the quota again at a replica in trouble, and all of it counted afterwards',
    historyOf(
      [
        [0, 1, 'allowed'],
        [2, 3, 'allowed'],
        [200, 200, 'allowed', atOnce],
        [201, 201, 'allowed', atOnce],
        [202, 202, 'refused', atOnce],
        [510, 511, 'refused'],
      ],
      { troubles: [trouble], counted: 4 },
    ),
  ],
  [
    'one request counted twice, as its answer was lost',
    historyOf(
      [
        [100, 200, 'allowed'],
        [510, 511, 'refused'],
      ],
      { troubles: [trouble], counted: 2 },
    ),
  ],
  [
    'the quota again after a restart',
    historyOf(
      [
        [0, 1, 'allowed'],
        [2, 3, 'allowed'],
        [510, 511, 'allowed'],
        [512, 513, 'allowed'],
      ],
      { losses: [{ fromMs: -Infinity, untilMs: 150 }], troubles: [trouble], counted: 2 },
    ),
  ],
  [
    'requests that pass uncounted during an outage',
    historyOf(
      [
        [0, 1, 'allowed'],
        [200, 200, 'passed', atOnce],
      ],
      { rule: open, troubles: [trouble] },
    ),
  ],
  [
    'a request counted, but not allowed, as its answer was lost',
    historyOf(
      [
        [0, 1, 'allowed'],
        [200, 300, 'unavailable'],
        [510, 511, 'refused'],
      ],
      {
        rule: closed,
        troubles: [trouble],
        counted: 2,
      },
    ),
  ],
]

const wrong: readonly [string, History][] = [
  [
    'one too many',
    historyOf([
      [0, 9, 'allowed'],
      [1, 9, 'allowed'],
      [2, 9, 'allowed'],
    ]),
  ],
  [
    'one too few',
    historyOf([
      [0, 1, 'allowed'],
      [2, 3, 'refused'],
      [4, 5, 'allowed'],
    ]),
  ],
  [
    'one too few, with the next too late',
    historyOf([
      [0, 1, 'allowed'],
      [2, 3, 'refused'],
    ]),
  ],
  [
    'one too many in the second window',
    historyOf([
      [0, 1, 'allowed'],
      [1010, 1011, 'allowed'],
      [1020, 1021, 'allowed'],
      [1990, 1991, 'allowed'],
    ]),
  ],
  [
    'a refusal after the window',
    historyOf([
      [0, 1, 'allowed'],
      [2, 3, 'allowed'],
      [1010, 1011, 'refused'],
    ]),
  ],
  [
    'a window that a refused request extended',
    historyOf([
      [0, 1, 'allowed'],
      [2, 3, 'allowed'],
      [900, 901, 'refused'],
      [1010, 1011, 'refused'],
      [1950, 1951, 'allowed'],
    ]),
  ],
  ['a request that nobody decided, without trouble', historyOf([[0, 1, 'unavailable']], { rule: closed })],
  ['a request let through uncounted, without trouble', historyOf([[0, 1, 'passed']], { rule: open })],
  ['503 under a local rule', historyOf([[200, 201, 'unavailable']], { troubles: [trouble] })],
  [
    'trouble at another replica',
    historyOf([[200, 201, 'unavailable', other]], { rule: closed, troubles: [trouble] }),
  ],
  [
    'more than the quota from one replica alone',
    historyOf(
      [200, 201, 202].map((atMs): Row => [atMs, atMs, 'allowed', atOnce]),
      { troubles: [trouble] },
    ),
  ],
  [
    'more than the quota once from the store and once from a replica',
    historyOf(
      [10, 20, 110, 120, 130].map((atMs): Row => [atMs, atMs + 1, 'allowed']),
      { troubles: [trouble] },
    ),
  ],
  [
    'what a replica admitted, unknown to the other afterwards',
    historyOf(
      [
        [200, 200, 'allowed', atOnce],
        [201, 201, 'allowed', atOnce],
        [510, 511, 'allowed', other],
      ],
      { troubles: [trouble] },
    ),
  ],
  [
    'what a replica admitted, added twice',
    historyOf([[200, 200, 'allowed', atOnce]], { troubles: [trouble], counted: 2 }),
  ],
  [
    'more counted than one request can have left',
    historyOf([[200, 300, 'allowed']], { troubles: [trouble], counted: 3 }),
  ],
  [
    'counted twice, where only the store allows',
    historyOf([[200, 300, 'allowed']], { rule: closed, troubles: [trouble], counted: 2 }),
  ],
  [
    'less counted than allowed',
    historyOf(
      [
        [0, 1, 'allowed'],
        [2, 3, 'allowed'],
      ],
      { counted: 1 },
    ),
  ],
  [
    'the quota again after a restart, although it was used up after that',
    historyOf(
      [
        [510, 511, 'allowed'],
        [512, 513, 'allowed'],
        [514, 515, 'allowed'],
      ],
      { losses: [{ fromMs: -Infinity, untilMs: 150 }], troubles: [trouble] },
    ),
  ],
  [
    'something forgotten that had been replicated',
    historyOf(
      [
        [0, 1, 'allowed'],
        [2, 3, 'allowed'],
        [510, 511, 'allowed'],
      ],
      { losses: [{ fromMs: 50, untilMs: 150 }], troubles: [trouble] },
    ),
  ],
]

describe('the judge', () => {
  test.each(sound)('the judge finds nothing in: %s', (_, history) => expect(judge(history)).toEqual([]))
  test.each(wrong)('finds: %s', (_, history) => expect(judge(history)).not.toEqual([]))
})
