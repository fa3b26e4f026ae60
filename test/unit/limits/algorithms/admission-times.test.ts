import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NONE } from '../../../../proxy/limits/algorithms/slots/key-index.ts'
import { AdmissionTimes } from '../../../../proxy/limits/algorithms/sliding/admission-times.ts'
import { TimestampQueues } from '../../../../proxy/limits/algorithms/sliding/timestamp-queues.ts'

const windowsMs = [100, 1_000, 5_000]
const plenty = 10_000

/** The number of counted times of a client of one of the tables. */
function countOf(pool: AdmissionTimes, table: number, key: string, nowMs: number): number {
  const slot = pool.find(table, key, windowsMs[table] ?? NaN, nowMs)
  return slot === NONE ? 0 : pool.count(slot)
}

function admit(pool: AdmissionTimes, table: number, key: string, nowMs: number): number {
  return pool.admit(table, key, windowsMs[table] ?? NaN, nowMs)
}

function useOf({ slots, timeSize, timeCapacity }: AdmissionTimes): object {
  const { size, evictions, pendingSize } = slots
  return { size, timeSize, timeCapacity, evictions, pendingSize }
}

/** Keeps the same promise in the plainest way: with a list of clients that it searches and sorts. */
class NaivePool {
  readonly #capacity: number
  #clients: { name: string; windowMs: number; times: number[] }[] = []

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  admit(name: string, windowMs: number, nowMs: number): number {
    for (const client of this.#clients)
      client.times = client.times.filter((timeMs) => timeMs + client.windowMs > nowMs)
    this.#clients = this.#clients.filter(({ times }) => times.length > 0)
    let client = this.#clients.find((other) => other.name === name)
    if (!client) {
      if (this.#clients.length === this.#capacity) {
        // Each table has a window length of its own.
        const sizeOf = (tableMs: number): number =>
          this.#clients.filter((one) => one.windowMs === tableMs).length
        this.#clients.sort(
          (a, b) =>
            sizeOf(b.windowMs) - sizeOf(a.windowMs) ||
            (a.times.at(-1) ?? 0) + a.windowMs - (b.times.at(-1) ?? 0) - b.windowMs,
        )
        this.#clients.shift()
      }
      client = { name, windowMs, times: [] }
      this.#clients.push(client)
    }
    client.times.push(nowMs)
    return client.times.length
  }
}

describe('a pool of sliding windows', () => {
  test('a pool of sliding windows counts as a plain list would, with any requests, at any times, in room for any number of clients', () => {
    // Times have a fraction that differs from step to step, so that no two clients end in the same instant.
    const step = fc.record({
      table: fc.nat(2),
      key: fc.constantFrom('a', 'b', 'c', 'd', 'é', 'x'.repeat(40)),
      afterMs: fc.nat(400),
    })
    const check = (room: number, steps: { table: number; key: string; afterMs: number }[]): void => {
      const pool = new AdmissionTimes({ maxKeys: room, seed: 3 }, plenty)
      const naive = new NaivePool(room)
      let nowMs = 0
      for (const [index, { table, key, afterMs }] of steps.entries()) {
        nowMs += afterMs + index / 1024
        pool.slots.reclaimInPassing(nowMs)
        countOf(pool, table, key, nowMs)
        const slot = admit(pool, table, key, nowMs)
        expect(pool.count(slot)).toBe(naive.admit(`${table} ${key}`, windowsMs[table] ?? NaN, nowMs))
        expect(pool.slots.size).toBeLessThanOrEqual(room)
      }
    }
    fc.assert(fc.property(fc.integer({ min: 1, max: 9 }), fc.array(step, { maxLength: 200 }), check), {
      numRuns: 300,
    })
  })

  test('a pool of sliding windows evicts the client whose times end first of the table that holds the most times', () => {
    const pool = new AdmissionTimes({ maxKeys: 100, seed: 3 }, 40)
    for (let i = 0; i < 12; i++) admit(pool, 2, 'long', i)
    for (let i = 0; i < 12; i++) admit(pool, 1, 'middle', 20 + i)
    for (let i = 0; i < 12; i++) admit(pool, 0, 'short', 40 + i)
    expect(useOf(pool)).toMatchObject({ size: 3, timeSize: 36, timeCapacity: 40, evictions: 0 })
    for (let i = 0; i < 5; i++) admit(pool, 1, 'other', 60 + i)
    expect(useOf(pool)).toMatchObject({ size: 3, evictions: 1 })
    expect([countOf(pool, 0, 'short', 65), countOf(pool, 1, 'middle', 65)]).toEqual([12, 0])
    for (let i = 0; i < 20; i++) admit(pool, 2, 'long', 70 + i)
    expect(useOf(pool)).toMatchObject({ size: 2, timeSize: 40, evictions: 2 })
    admit(pool, 2, 'long', 91)
    expect(useOf(pool)).toMatchObject({ size: 1, timeSize: 36, evictions: 3 })
    expect(countOf(pool, 2, 'long', 91)).toBe(33)
  })

  test('a pool of sliding windows never holds more times than there is room for, nor loses room, with any clients', () => {
    const step = fc.record({ table: fc.nat(2), key: fc.nat(20).map(String), afterMs: fc.nat(60) })
    const check = (steps: { table: number; key: string; afterMs: number }[]): void => {
      const pool = new AdmissionTimes({ maxKeys: 8, seed: 3 }, 32)
      let nowMs = 0
      for (const { table, key, afterMs } of steps) {
        nowMs += afterMs
        pool.slots.reclaimInPassing(nowMs)
        const slot = admit(pool, table, key, nowMs)
        expect(pool.count(slot)).toBeGreaterThan(0)
        expect(pool.timeSize).toBeLessThanOrEqual(32)
      }
      for (let i = 0; i < 60; i++) pool.slots.reclaimInPassing(nowMs + 6000)
      expect(useOf(pool)).toMatchObject({ size: 0, timeSize: 0 })
      for (let i = 0; i < 32; i++) admit(pool, 2, 'all', nowMs + 6000 + i)
      expect(countOf(pool, 2, 'all', nowMs + 6100)).toBe(32)
    }
    fc.assert(fc.property(fc.array(step, { maxLength: 200 }), check), { numRuns: 100 })
  })

  test('a pool of sliding windows keeps the newest times of a client that is alone and has more than there is room for', () => {
    const pool = new AdmissionTimes({ maxKeys: 2, seed: 3 }, 8)
    for (let i = 0; i < 30; i++) admit(pool, 2, 'alone', i)
    const slot = pool.find(2, 'alone', 5000, 30)
    expect(pool.count(slot)).toBeLessThanOrEqual(8)
    expect(pool.leavesAtMs(slot, 5000)).toBe(5000 + 30 - pool.count(slot))
  })

  test('a pool of sliding windows forgets a client at once, and all its times', () => {
    const pool = new AdmissionTimes({ maxKeys: 10, seed: 3 }, 100)
    for (const key of ['a', 'b', 'c']) for (let i = 0; i < 9; i++) pool.markPending(admit(pool, 1, key, i))
    expect([pool.slots.forget(1, 'b'), pool.slots.forget(1, 'b'), pool.slots.forget(2, 'a')]).toEqual([
      true,
      false,
      false,
    ])
    expect(useOf(pool)).toMatchObject({ size: 2, timeSize: 24, pendingSize: 2 })
    expect(countOf(pool, 1, 'b', 10)).toBe(0)
    expect(countOf(pool, 1, 'c', 10)).toBe(9)
  })
})

describe('times that the shared counters do not have', () => {
  test('times that the shared counters do not have are handed out once, oldest first, in parts, and not those that have left', () => {
    const pool = new AdmissionTimes({ maxKeys: 10, seed: 3 }, 100)
    for (const timeMs of [0, 10, 20, 30, 40]) pool.markPending(admit(pool, 0, 'a', timeMs))
    pool.markPending(admit(pool, 1, 'b', 50))
    expect(pool.takePending(2, 105)).toEqual([{ table: 0, key: 'a', counted: [10, 20], endsAtMs: 120 }])
    pool.markPending(admit(pool, 0, 'a', 106))
    expect(pool.takePending(10, 135)).toEqual([
      { table: 0, key: 'a', counted: [40, 106], endsAtMs: 206 },
      { table: 1, key: 'b', counted: [50], endsAtMs: 1050 },
    ])
    expect(pool.slots.pendingSize).toBe(0)
    expect(pool.takePending(10, 135)).toEqual([])
    expect(countOf(pool, 0, 'a', 135)).toBe(2)
  })

  test('times that the shared counters do not have are forgotten where all have left, so that nothing is owed', () => {
    const pool = new AdmissionTimes({ maxKeys: 10, seed: 3 }, 100)
    pool.markPending(admit(pool, 0, 'a', 0))
    expect(countOf(pool, 0, 'a', 100)).toBe(0)
    expect(pool.slots.pendingSize).toBe(0)
    pool.markPending(admit(pool, 0, 'b', 100))
    expect(pool.takePending(10, 200)).toEqual([])
    expect(pool.slots.pendingSize).toBe(0)
  })
})

test('queues keep their entries in order', () => {
  const queue = fc.nat(2)
  const action = fc.oneof(
    queue.map((at) => ({ at, puts: true })),
    queue.map((at) => ({ at, puts: false })),
  )
  const check = (actions: { at: number; puts: boolean }[]): void => {
    const queues = new TimestampQueues(3, 20)
    const plain: number[][] = [[], [], []]
    for (const [time, { at, puts }] of actions.entries()) {
      const list = plain[at] ?? []
      if (puts && !queues.isFullFor(at)) {
        queues.push(at, time)
        list.push(time)
      } else if (!puts && list.length > 0) {
        queues.shift(at)
        list.shift()
      }
      for (const [index, expected] of plain.entries()) {
        expect(queues.slice(index, 0, queues.count(index))).toEqual(expected)
        if (expected.length > 0) expect(queues.first(index)).toBe(expected[0])
        if (expected.length > 0) expect(queues.last(index)).toBe(expected.at(-1))
      }
    }
  }
  fc.assert(fc.property(fc.array(action, { maxLength: 100 }), check), { numRuns: 200 })
})

describe('units that are given back', () => {
  /** A client with a number of requests at each of several times. The last few have yet to be added to Redis. */
  function poolOf(
    unitsAt: readonly number[],
    pending: number,
  ): { readonly pool: AdmissionTimes; readonly slot: number } {
    const pool = new AdmissionTimes({ maxKeys: 8, seed: 3 }, plenty)
    const units = unitsAt.flatMap((count, timeMs) => Array.from({ length: count }, () => timeMs))
    let slot = NONE
    for (const [index, timeMs] of units.entries()) {
      slot = admit(pool, 2, 'a', timeMs)
      if (index >= units.length - pending) pool.markPending(slot)
    }
    return { pool, slot }
  }

  test('units that are given back are taken out as if one after another', () => {
    const check = (
      unitsAt: number[],
      pending: number,
      timeMs: number,
      units: number,
      onlyPending: boolean,
    ): void => {
      const [together, single] = [poolOf(unitsAt, pending), poolOf(unitsAt, pending)]
      together.pool.remove(2, together.slot, timeMs, units, onlyPending)
      for (let unit = 0; unit < units && countOf(single.pool, 2, 'a', 9) > 0; unit++)
        single.pool.remove(2, single.slot, timeMs, 1, onlyPending)
      const [found, wanted] = [together, single].map(({ pool }) => ({
        ...useOf(pool),
        count: countOf(pool, 2, 'a', 9),
        pending: pool.takePending(plenty, 9),
      }))
      expect(found).toEqual(wanted)
    }
    const unitsAt = fc.array(fc.nat(6), { minLength: 1, maxLength: 5 }).filter((units) => units.some(Boolean))
    const few = fc.nat(8)
    fc.assert(fc.property(unitsAt, few, fc.nat(5), fc.integer({ min: 1, max: 8 }), fc.boolean(), check), {
      numRuns: 500,
    })
  })

  // A batch of 2,000 uncounted requests once stopped the process for seconds.
  test('units that are given back take no longer when they are many', () => {
    const pool = new AdmissionTimes({ maxKeys: 8, seed: 3 }, 120_000)
    let slot = NONE
    for (let i = 0; i < 50_000; i++) slot = admit(pool, 2, 'a', i / 50_000)
    for (let i = 0; i < 2_000; i++) slot = admit(pool, 2, 'a', 1)
    const before = process.threadCpuUsage()
    pool.remove(2, slot, 1, 2_000, false)
    const { user, system } = process.threadCpuUsage(before)
    expect(pool.count(slot)).toBe(50_000)
    expect((user + system) / 1000).toBeLessThan(100)
  })
})
