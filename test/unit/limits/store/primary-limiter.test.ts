import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryLimiter } from '../../../../proxy/limits/store/memory/limiter.ts'
import { ServedLimiter } from '../../../../proxy/limits/store/workers/primary-limiter.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import { doAtOnce } from '../../../../shared/steps.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

// The table of limits changes while a worker's requests are in flight, some of them for longer than an hour.

const limitTo = (quota: number): Policy => makePolicy('a', quota, 15_000, { algorithm: 'concurrency' })
const partitionKey = '192.0.2.1'

let counters: MemoryLimiter
let served: ServedLimiter
let receive: (message: unknown) => void

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
  counters = new MemoryLimiter({ maxKeys: 100, seed: 1, now: () => performance.now() })
  served = new ServedLimiter({
    counters,
    policies: [limitTo(5)],
    port: { send: () => undefined, listen: (listener) => void (receive = listener) },
  })
})

afterEach(() => {
  vi.useRealTimers()
})

const begin = (name: string): void => receive({ limiter: 'ask', id: 1, requests: [[name, partitionKey]] })
const end = (name: string): void => receive({ limiter: 'settle', settled: [[name, partitionKey, 1, 0, 0]] })
const change = (quota: number, revision: number): void =>
  doAtOnce(served.usePolicies([limitTo(quota)], ['a'], revision))
const inFlight = (): number => counters.read({ policy: limitTo(5), partitionKey })?.used ?? 0
const anHourLater = (): void => void vi.advanceTimersByTime(3_600_001)

test('a request that began under a quota set at run time ends after hours and two changes of the table', () => {
  begin('a=9')
  expect(inFlight()).toBe(1)
  change(6, 1)
  anHourLater()
  change(7, 2)
  end('a=9')
  expect(inFlight()).toBe(0)
})

test('a request that began beside another of an older table ends after changes of the table', () => {
  begin('a')
  change(6, 1)
  begin('a@1')
  end('a')
  change(7, 2)
  anHourLater()
  change(8, 3)
  expect(inFlight()).toBe(1)
  end('a@1')
  expect(inFlight()).toBe(0)
})
