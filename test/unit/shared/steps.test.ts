import { constants, PerformanceObserver } from 'node:perf_hooks'
import { expect, onTestFinished, test } from 'vitest'
import { doAtOnce, doInTurns, type Steps } from '../../../shared/steps.ts'

/** Each step takes half a millisecond. */
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
      yield
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

/* An explicit garbage collection finishes any marking of the whole heap that is in progress: tens of milliseconds of CPU in one turn. */
test('work in turns asks for no garbage collection', async () => {
  const flags: number[] = []
  const note = (entries: readonly object[]): void => {
    for (const entry of entries)
      flags.push((entry as { readonly detail: { readonly flags: number } }).detail.flags)
  }
  const observer = new PerformanceObserver((list) => note(list.getEntries()))
  observer.observe({ entryTypes: ['gc'] })
  onTestFinished(() => observer.disconnect())
  await doInTurns(count(100))
  await new Promise((resolve) => setImmediate(resolve))
  note(observer.takeRecords())
  expect(flags.filter((each) => (each & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0)).toEqual([])
})
