import { expect, test } from 'vitest'
import { EndHeap } from '../../../../proxy/limits/algorithms/slots/end-heap.ts'
import { SlotPool } from '../../../../proxy/limits/algorithms/slots/slot-pool.ts'

/*
 * When a client uses a token bucket again, its slot ends later, which the heap notices only once the first end has passed. If a million
 * clients did so and then no request came, the next request would otherwise have to handle all of them at once: that once took 350 ms.
 */

/**
 * A full pool: the last slots end at 10, and all others at 1000, although the heap still has 1 for them. Counts how often ends are read.
 */
function makePool(size: number, ended: number) {
  const ends = new Float64Array(size).fill(1)
  const state = { reads: 0 }
  const heap = new EndHeap(size, (slot) => {
    state.reads += 1
    return ends[slot] ?? 0
  })
  const pool = new SlotPool({ maxKeys: size, seed: 42 }, new Uint32Array(size), {
    endsAtMs: (slot) => ends[slot] ?? 0,
    clear: (slot) => heap.delete(slot),
    findEnded: (nowMs, maxReads) => heap.findEnded(nowMs, maxReads),
  })
  for (let i = 0; i < size; i++) {
    const slot = pool.add(0, `key ${i}`, 1000, 0)
    if (i >= size - ended) ends[slot] = 10
    pool.putLast(0, slot)
    heap.update(slot)
    if (i < size - ended) ends[slot] = 1000
  }
  state.reads = 0
  return { pool, state }
}

test('reclaiming in passing reads a few slots, however many end later than known', () => {
  const { pool, state } = makePool(20_000, 3)
  let calls = 0
  for (; pool.size > 20_000 - 3; calls++) {
    const before = state.reads
    pool.reclaimInPassing(20)
    expect(state.reads - before).toBeLessThanOrEqual(8)
    expect(calls).toBeLessThan(20_000)
  }
  expect(state.reads).toBeLessThanOrEqual(20_000 + 3)
  expect(pool.evictions).toBe(0)
})

test('before a slot is evicted, an ended one is found after hundreds that end later than known', () => {
  const { pool } = makePool(900, 1)
  pool.add(0, 'one more', 1000, 20)
  expect([pool.size, pool.evictions, pool.find(0, 'key 899')]).toEqual([900, 0, -1])
})

test('evicting a slot takes a bounded number of reads, and further evictions find the ended one', () => {
  const { pool, state } = makePool(20_000, 1)
  for (let added = 0; pool.find(0, 'key 19999') !== -1; added++) {
    const before = state.reads
    pool.putLast(0, pool.add(0, `more ${added}`, 1000, 20))
    expect(state.reads - before).toBeLessThan(1100)
    expect(added).toBeLessThan(25)
  }
  expect(pool.evictions).toBeLessThan(20)
})
