import { expect, test } from 'vitest'
import { doAtOnce, doInTurns, type Steps } from '../../../shared/steps.ts'

/** Takes half a millisecond a step. */
function* count(to: number): Steps<number> {
  let counted = 0
  while (counted < to) {
    const untilMs = performance.now() + 0.5
    while (performance.now() < untilMs);
    counted += 1
    yield
  }
  return counted
}

test('work that is done in turns lets others have theirs, and comes to the same', async () => {
  let turns = 0
  let others = setImmediate(function turn() {
    turns += 1
    others = setImmediate(turn)
  })
  expect(await doInTurns(count(100))).toBe(100)
  clearImmediate(others)
  expect(turns).toBeGreaterThan(10)
  expect(doAtOnce(count(100))).toBe(100)
})

test('work in steps begins in a turn of its own', async () => {
  let hasBegun = false
  const done = doInTurns(
    (function* (): Steps<void> {
      hasBegun = true
    })(),
  )
  await Promise.resolve()
  expect(hasBegun).toBe(false)
  await done
  expect(hasBegun).toBe(true)
})

test('an error in a step rejects the work', async () => {
  function* fail(): Steps<void> {
    yield
    throw new Error('no more')
  }
  await expect(doInTurns(fail())).rejects.toThrow('no more')
})
