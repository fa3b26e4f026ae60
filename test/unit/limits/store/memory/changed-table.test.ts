import { doAtOnce } from '../../../../../shared/steps.ts'
import { describe, expect, test, vi } from 'vitest'
import { MemoryLimiter } from '../../../../../proxy/limits/store/memory/limiter.ts'
import { SlotLists } from '../../../../../proxy/limits/algorithms/slots/slot-lists.ts'
import type { Policy } from '../../../../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../../../support/limiter/charges.ts'
import { readTable } from '../../../../support/limiter/limiters.ts'

// The table of limits changes while in use: some counters continue, others are freed.

const hour = 3_600_000
const kinds = ['fixed', 'sliding', 'token-bucket'] as const

function createLimiter(): MemoryLimiter {
  return new MemoryLimiter({ maxKeys: 1000, seed: 42, now: () => 100 })
}

/** The remaining quota of the client after one more request. */
function remaining(limiter: MemoryLimiter, policy: Policy, pendingSync = false): number {
  const charges = chargeAll('ip:192.0.2.1', [policy])
  const decision = pendingSync ? limiter.decidePendingSync(charges) : limiter.decide(charges)
  return decision.outcome === 'unavailable' ? NaN : (decision.states[0]?.remaining ?? NaN)
}

function inUse(limiter: MemoryLimiter): number {
  return readTable(limiter).size + readTable(limiter, 'buckets').size + readTable(limiter, 'sliding').size
}

describe.each(kinds)('%s', (algorithm) => {
  const make = (quota: number, windowMs = hour, name = 'api'): Policy =>
    makePolicy(name, quota, windowMs, { algorithm })

  test('another quota continues from the current count', () => {
    const limiter = createLimiter()
    const [before, after] = [make(10), make(20)]
    for (let asked = 0; asked < 5; asked++) remaining(limiter, before)
    doAtOnce(limiter.useTable([after]))
    // A bucket keeps its fill ratio.
    expect(remaining(limiter, after)).toBe(algorithm === 'token-bucket' ? 9 : 14)
    doAtOnce(limiter.useTable([before]))
    expect(remaining(limiter, before)).toBe(algorithm === 'token-bucket' ? 3 : 3)
  })

  test('a quota below the current count leaves 0', () => {
    const limiter = createLimiter()
    for (let asked = 0; asked < 5; asked++) remaining(limiter, make(10))
    const after = make(algorithm === 'token-bucket' ? 1 : 2)
    doAtOnce(limiter.useTable([after]))
    expect(remaining(limiter, after)).toBe(0)
  })

  test('a rule that is gone is freed, and its place is used again', () => {
    const limiter = createLimiter()
    const [kept, gone] = [make(10, hour, 'kept'), make(10, hour, 'gone')]
    remaining(limiter, kept)
    remaining(limiter, gone)
    expect(inUse(limiter)).toBe(2)
    doAtOnce(limiter.useTable([kept]))
    expect(inUse(limiter)).toBe(1)
    expect(remaining(limiter, make(10, 60_000, 'new'))).toBe(9)
    expect(remaining(limiter, kept)).toBe(8)
    expect(remaining(limiter, gone)).toBe(9)
  })

  test('counts pending sync stay until they are synced', () => {
    const limiter = createLimiter()
    const gone = make(10)
    remaining(limiter, gone, true)
    doAtOnce(limiter.useTable([]))
    expect(limiter.takePending(10)).toMatchObject([{ policy: gone, partitionKey: 'ip:192.0.2.1' }])
    doAtOnce(limiter.useTable([]))
    expect(inUse(limiter)).toBe(0)
  })

  test('changing the window each time leaves no list of earlier windows for each request to check', () => {
    const add = vi.spyOn(SlotLists.prototype, 'add')
    const limiter = createLimiter()
    const kept = make(10, hour, 'kept')
    for (let change = 1; change <= 20; change++) {
      const policy = make(10, hour + change)
      doAtOnce(limiter.useTable([kept, policy]))
      expect(remaining(limiter, policy)).toBe(9)
      remaining(limiter, kept)
    }
    const lists = add.mock.contexts.at(-1) as SlotLists
    add.mockRestore()
    expect(lists.all.map(({ windowMs }) => windowMs).sort()).toEqual([hour, hour + 20])
    expect(inUse(limiter)).toBe(2)
  })

  test('another window starts a new count', () => {
    const limiter = createLimiter()
    remaining(limiter, make(10))
    const after = make(10, 60_000)
    doAtOnce(limiter.useTable([after]))
    expect(remaining(limiter, after)).toBe(9)
    expect(inUse(limiter)).toBe(1)
  })
})

test('requests in flight stay counted when their maximum changes', () => {
  const limiter = createLimiter()
  const make = (quota: number): Policy => makePolicy('export', quota, 15_000, { algorithm: 'concurrency' })
  const charges = chargeAll('ip:192.0.2.1', [make(2)])
  const first = limiter.decide(charges)
  const after = make(1)
  doAtOnce(limiter.useTable([after]))
  expect(limiter.decide(chargeAll('ip:192.0.2.1', [after])).outcome).toBe('refused')
  const reservation = first.outcome === 'allowed' ? first.states[0]?.reservation : undefined
  if (reservation) limiter.settle(reservation, 0)
  expect(limiter.decide(chargeAll('ip:192.0.2.1', [after])).outcome).toBe('allowed')
})
