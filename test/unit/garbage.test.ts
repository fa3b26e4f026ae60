import { expect, test } from 'vitest'
import { collectGarbage } from '../../shared/garbage.ts'

test('what is collected leaves the heap', () => {
  let garbage: object[] = Array.from({ length: 200_000 }, (_, i) => ({ i }))
  collectGarbage()
  const held = process.memoryUsage().heapUsed
  garbage = garbage.slice(0, 1)
  collectGarbage()
  expect(held - process.memoryUsage().heapUsed).toBeGreaterThan(2_000_000)
  expect(garbage).toHaveLength(1)
})
