import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  createCircuitBreaker,
  type CircuitBreaker,
} from '../../../../proxy/limits/store/outage/circuit-breaker.ts'

let heard: string[]
let recoveries: (() => void)[]
let breaker: CircuitBreaker

beforeEach(() => {
  vi.useFakeTimers()
  heard = []
  recoveries = []
  breaker = createCircuitBreaker({
    failuresToOpen: 3,
    retryEveryMs: 250,
    recover: () => new Promise((resolve) => void recoveries.push(resolve)),
    opened: (reason) => heard.push(`opened: ${reason}`),
    closed: () => heard.push('closed'),
  })
})
afterEach(() => {
  breaker.stop()
  vi.useRealTimers()
})

test('the circuit breaker opens after three failures in a row, and names the first of them', () => {
  for (const reason of ['a', 'b']) breaker.failed(reason)
  breaker.succeeded()
  for (const reason of ['c', 'd']) breaker.failed(reason)
  expect(breaker.isOpen).toBe(false)
  breaker.failed('e')
  breaker.failed('f')
  expect(breaker.isOpen).toBe(true)
  expect(heard).toEqual(['opened: c'])
})

test('the circuit breaker tries to recover at intervals, never twice at once, until it is closed', async () => {
  breaker.open('a')
  expect(recoveries).toHaveLength(0)
  await vi.advanceTimersByTimeAsync(250)
  expect(recoveries).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1000)
  expect(recoveries).toHaveLength(1)
  recoveries[0]?.()
  await vi.advanceTimersByTimeAsync(250)
  expect(recoveries).toHaveLength(2)
  breaker.close()
  recoveries[1]?.()
  await vi.advanceTimersByTimeAsync(2000)
  expect(recoveries).toHaveLength(2)
  expect(heard).toEqual(['opened: a', 'closed'])
})

test('the circuit breaker counts failures anew after it was closed, and can be closed and opened again', () => {
  breaker.open('a')
  breaker.close()
  breaker.close()
  breaker.failed('b')
  breaker.failed('b')
  expect(breaker.isOpen).toBe(false)
  breaker.failed('b')
  expect(heard).toEqual(['opened: a', 'closed', 'opened: b'])
})
