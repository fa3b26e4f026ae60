import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WindowCounts, fromFirstRequest } from '../../../../proxy/limits/algorithms/fixed/counts.ts'
import { KeyIndex, NONE } from '../../../../proxy/limits/algorithms/slots/key-index.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

const quota = 1_000_000
const policies = [100, 1_000, 5_000].map((windowMs) => makePolicy('any', quota, windowMs))

/** Keeps the same promise in the plainest way: with a list of counters that it searches and sorts. */
class NaivePool {
  readonly #capacity: number
  #counters: { table: number; key: string; count: number; endsAtMs: number; begun: number }[] = []
  #begun = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  addOne(table: number, key: string, windowMs: number, nowMs: number): number {
    this.#counters = this.#counters.filter(({ endsAtMs }) => endsAtMs > nowMs)
    let counter = this.#counters.find((other) => other.table === table && other.key === key)
    if (!counter) {
      if (this.#counters.length === this.#capacity) {
        const sizeOf = (wanted: number): number => this.#counters.filter((one) => one.table === wanted).length
        this.#counters.sort(
          (a, b) => sizeOf(b.table) - sizeOf(a.table) || a.endsAtMs - b.endsAtMs || a.begun - b.begun,
        )
        this.#counters.shift()
      }
      counter = { table, key, count: 0, endsAtMs: nowMs + windowMs, begun: this.#begun++ }
      this.#counters.push(counter)
    }
    counter.count += 1
    return counter.count
  }
}

test('counters of fixed windows match a plain list, with any requests, at any times, in any room', () => {
  // Times have a fraction that differs from step to step, so that no two windows end in the same instant.
  const step = fc.record({
    table: fc.nat(2),
    key: fc.constantFrom('a', 'b', 'c', 'd', 'é', '\u{1f600}', 'x'.repeat(31), 'x'.repeat(32)),
    afterMs: fc.nat(400),
  })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.array(step, { maxLength: 200 }),
      fc.integer(),
      (room, steps, seed) => {
        const counts = new WindowCounts({ maxKeys: room, seed }, 'counters', fromFirstRequest)
        const naive = new NaivePool(room)
        let nowMs = 0
        for (const [index, { table, key, afterMs }] of steps.entries()) {
          nowMs += afterMs + index / 1024
          const policy = policies[table] ?? makePolicy('none', 1, 1)
          counts.slots.reclaimInPassing(nowMs)
          const { remaining } = counts.charge(table, { policy, partitionKey: key }, 1, nowMs, false)
          expect(quota - remaining).toBe(naive.addOne(table, key, policy.windowMs, nowMs))
          expect(counts.readUse()['counters']?.size).toBeLessThanOrEqual(room)
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('a count stays at the largest number that it can hold', () => {
  const counts = new WindowCounts({ maxKeys: 1, seed: 1 }, 'counters', fromFirstRequest)
  const charge = { policy: makePolicy('any', quota, 1000), partitionKey: 'a' }
  const reservation = { charge, units: 1, isLocal: true, ticket: 1000 }
  counts.giveBack(0, reservation, -(2 ** 32 - 2), 0)
  counts.giveBack(0, reservation, -5, 0)
  expect(counts.read(0, charge, 0)?.used).toBe(2 ** 32 - 1)
  expect(counts.takePending(1, 0)).toMatchObject([{ counted: [2 ** 32 - 1] }])
})

test('an index finds every key of a full table, and no removed one', () => {
  const index = new KeyIndex(1000, -5)
  const keys = Array.from({ length: 1000 }, (_, i) => `ip:192.0.${i >> 8}.${i & 255}`)
  keys.forEach((key, slot) => index.insert(slot, slot % 3, key))
  keys.forEach((key, slot) => {
    expect(index.find(slot % 3, key)).toBe(slot)
    expect(index.find((slot + 1) % 3, key)).toBe(NONE)
    expect(index.keyOf(slot)).toBe(key)
    expect(index.ownerOf(slot)).toBe(slot % 3)
  })
  for (let slot = 0; slot < keys.length; slot += 2) index.remove(slot)
  keys.forEach((key, slot) => {
    expect(index.find(slot % 3, key)).toBe(slot % 2 === 0 ? NONE : slot)
  })
})
