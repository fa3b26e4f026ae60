import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { trimHeapAfterBursts } from '../../../proxy/app/memory/heap-trim.ts'

let open = 0
let collected = 0
let stop: () => void

function start(): void {
  open = 0
  collected = 0
  stop = trimHeapAfterBursts(
    () => open * 16 * 1024 + 16 * 1024,
    () => collected++,
  )
}

beforeEach(() => {
  vi.useFakeTimers()
  start()
})

afterEach(() => {
  stop()
  vi.useRealTimers()
})

function pass(seconds: number, connections: number): void {
  open = connections
  vi.advanceTimersByTime(seconds * 1_000)
}

test('memory is collected once when a burst of connections is over', () => {
  pass(10, 4_000)
  pass(2, 50)
  expect(collected).toBe(0)
  pass(2, 50)
  expect(collected).toBe(1)
  pass(600, 50)
  expect(collected).toBe(1)
})

test('memory is not collected while half of the connections are left, after few, or when they are back at once', () => {
  pass(10, 4_000)
  pass(10, 2_100)
  pass(10, 4_000)
  pass(2, 0)
  pass(10, 4_000)
  expect(collected).toBe(0)
  pass(60, 0)
  collected = 0
  pass(10, 900)
  pass(60, 0)
  expect(collected).toBe(0)
})

test('consecutive bursts do not trigger a collection each', () => {
  for (let burst = 0; burst < 30; burst++) {
    pass(4, 4_000)
    pass(6, 0)
  }
  expect(collected).toBeGreaterThan(5)
  expect(collected).toBeLessThanOrEqual(10)
})
