import { expect, test } from 'vitest'
import { IdleLimit } from '../../../../proxy/http/upstream/keep-alive/idle-limit.ts'

/** Whether a connection that has been idle for `idleMs` is used after the backend has closed others that were idle for `closed`. */
const learned: readonly (readonly [closed: readonly number[], idleMs: number, isUsed: boolean])[] = [
  [[], 100_000, true],
  [[2_000], 999, true],
  [[2_000], 1_000, false],
  [[2_900, 2_000, 2_500], 1_000, false],
  [[500], 249, true],
  [[500], 250, false],
  // A backend that closes right after its responses without announcing it.
  [[0.2], 0.2, false],
]

test.for(learned)(
  'after the backend closed connections idle for %j ms, one idle for %j ms is used: %j',
  ([closed, idleMs, isUsed]) => {
    const limit = new IdleLimit()
    for (const closedMs of closed) limit.recordClosed(closedMs)
    expect(limit.allows(idleMs)).toBe(isUsed)
  },
)

test('after a restart, which closes connections of any age, the first that lives longer is used again', () => {
  const limit = new IdleLimit()
  limit.recordClosed(3)
  limit.recordOpen(200)
  expect(limit.allows(200)).toBe(false)
  limit.recordOpen(255)
  expect(limit.allows(255)).toBe(true)
  expect(limit.isKnown).toBe(false)
})
