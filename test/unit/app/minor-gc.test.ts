import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { scheduleMinorGcs } from '../../../proxy/app/memory/minor-gc.ts'

let accepted = 0
let collected = 0
let stop: () => void

beforeEach(() => {
  vi.useFakeTimers()
  accepted = 1_000
  collected = 0
  stop = scheduleMinorGcs(
    () => accepted,
    () => collected++,
  )
})

afterEach(() => {
  stop()
  vi.useRealTimers()
})

/** Advances time, with a number of new connections every tenth of a second. */
function pass(seconds: number, connections: number): void {
  for (let tenth = 0; tenth < 10 * seconds; tenth++) {
    accepted += connections
    vi.advanceTimersByTime(100)
  }
}

test('many new connections trigger a minor collection every tenth of a second', () => {
  pass(1, 40)
  expect(collected).toBe(10)
  pass(1, 4_000)
  expect(collected).toBe(20)
})

test('few new connections trigger a collection once they add up, and none never does', () => {
  pass(1, 1)
  expect(collected).toBe(0)
  pass(1, 1)
  expect(collected).toBe(1)
  pass(60, 0)
  expect(collected).toBe(1)
})

test('no collection runs after the stop', () => {
  stop()
  pass(10, 100)
  expect(collected).toBe(0)
})
