import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CounterPool } from '../../../../../proxy/limits/store/memory/counter-pool.ts'
import { KeyIndex, NONE } from '../../../../../proxy/limits/store/memory/key-index.ts'

const windowsMs = [100, 1_000, 5_000]

/** The same promise, kept in the plainest way: a list of counters that is searched and sorted. */
class NaivePool {
  readonly #capacity: number
  #counters: { name: string; count: number; endsAtMs: number; begun: number }[] = []
  #begun = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  addOne(name: string, windowMs: number, nowMs: number): number {
    this.#counters = this.#counters.filter(({ endsAtMs }) => endsAtMs > nowMs)
    let counter = this.#counters.find((other) => other.name === name)
    if (!counter) {
      if (this.#counters.length === this.#capacity) {
        this.#counters.sort((a, b) => a.endsAtMs - b.endsAtMs || a.begun - b.begun)
        this.#counters.shift()
      }
      counter = { name, count: 0, endsAtMs: nowMs + windowMs, begun: this.#begun++ }
      this.#counters.push(counter)
    }
    counter.count += 1
    return counter.count
  }
}

test('counts as a plain list would, with any requests, at any times, in any room', () => {
  // Times with a fraction that differs from step to step, so that no two windows end in the same instant.
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
        const pool = new CounterPool(room, seed)
        const naive = new NaivePool(room)
        let nowMs = 0
        for (const [index, { table, key, afterMs }] of steps.entries()) {
          nowMs += afterMs + index / 1024
          const windowMs = windowsMs[table] ?? 1
          pool.reclaimInPassing(nowMs)
          let slot = pool.find(table, key, nowMs)
          if (slot === NONE) slot = pool.begin(table, key, windowMs, nowMs)
          pool.add(slot, 1)
          expect(pool.count(slot)).toBe(naive.addOne(`${table} ${key}`, windowMs, nowMs))
          expect(pool.size).toBeLessThanOrEqual(room)
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('keeps a count at the largest number that it can hold', () => {
  const pool = new CounterPool(1, 1)
  const slot = pool.begin(0, 'a', 1000, 0)
  pool.add(slot, 2 ** 32 - 2)
  pool.add(slot, 5)
  expect(pool.count(slot)).toBe(2 ** 32 - 1)
})

test('finds every key of a full index, and no removed one', () => {
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
