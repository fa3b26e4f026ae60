import { expect, test, vi } from 'vitest'
import { AdmissionTimes } from '../../../../../proxy/limits/algorithms/sliding/admission-times.ts'
import { algorithms } from '../../../../../proxy/limits/algorithms/registry.ts'
import { NONE } from '../../../../../proxy/limits/algorithms/slots/key-index.ts'
import { Buckets } from '../../../../../proxy/limits/algorithms/token-bucket/buckets.ts'
import { SlotPool } from '../../../../../proxy/limits/algorithms/slots/slot-pool.ts'
import type { Policy } from '../../../../../proxy/policy.ts'
import { MemoryLimiter } from '../../../../../proxy/limits/store/memory/limiter.ts'
import { seededRandom } from '../../../../support/random/seeded-random.ts'
import { testSeed } from '../../../../support/random/seed.ts'
import { chargeAll, makePolicy } from '../../../../support/limiter/charges.ts'

/*
 * All rules share the memory for counters. Under a rule that counts by a header, a client can invent any number of keys. If these could
 * evict the counters of another rule, they could evict the client's own sign-in counters, and its sign-in limit would start again each
 * time.
 */

const MAX_KEYS = 600
const MINUTE_MS = 60_000
const random = seededRandom(testSeed())

function draw(from: number, to: number): number {
  return from + Math.floor(random() * (to - from))
}

test.each(algorithms.filter(({ rule }) => rule.summary !== undefined).map(({ name }) => name))(
  'keys that are made up under one rule evict no counter of another that has fewer, %s',
  (algorithm) => {
    for (let round = 0; round < 8; round++) {
      let nowMs = 100
      const limiter = new MemoryLimiter({ maxKeys: MAX_KEYS, seed: 42, now: () => nowMs })
      const ask = (policy: Policy, client: string): string =>
        limiter.decide(chargeAll(client, [policy])).outcome
      const login = makePolicy('login', 5, draw(2, 30) * MINUTE_MS, { algorithm })
      const flooded = Array.from({ length: draw(1, 4) }, (_, i) =>
        makePolicy(`flooded ${i}`, draw(1, 100), draw(1, 60) * MINUTE_MS, { algorithm }),
      )
      const clients = Array.from({ length: draw(1, 50) }, (_, i) => `ip:${i}`)
      for (const client of clients) for (let sent = 0; sent < 5; sent++) ask(login, client)
      for (let sent = 0; sent < 3 * MAX_KEYS; sent++) {
        const policy = flooded[draw(0, flooded.length)]
        if (policy) ask(policy, `key:${sent}`)
        nowMs += 0.01
      }
      expect(clients.map((client) => ask(login, client))).toEqual(clients.map(() => 'refused'))
    }
  },
)

test('keys that are made up under one of hundreds of rules evict no counter of the others', () => {
  let nowMs = 100
  const limiter = new MemoryLimiter({ maxKeys: MAX_KEYS, seed: 42, now: () => nowMs })
  const flooded = makePolicy('flooded', 5, 60 * MINUTE_MS)
  const others = Array.from({ length: 200 }, (_, i) => makePolicy(`other ${i}`, 1, draw(2, 30) * MINUTE_MS))
  for (let sent = 0; sent < 3 * MAX_KEYS; sent++) {
    const other = others[sent]
    if (other) limiter.decide(chargeAll('ip', [other]))
    limiter.decide(chargeAll(`key:${sent}`, [flooded]))
    nowMs += 0.01
  }
  const outcomes = others.map((other) => limiter.decide(chargeAll('ip', [other])).outcome)
  expect(new Set(outcomes)).toEqual(new Set(['refused']))
})

test('with any number of rules, no running counter is evicted while an ended one is left', () => {
  for (const tables of [1, 2, 10, 99, 152, 400]) {
    const ends = new Float64Array(MAX_KEYS)
    const pool = new SlotPool({ maxKeys: MAX_KEYS, seed: 42 }, new Uint32Array(MAX_KEYS), {
      endsAtMs: (slot) => ends[slot] ?? 0,
    })
    const windowsMs = Array.from({ length: tables }, () => draw(1, 100) * MINUTE_MS)
    let evictedTooEarly = 0
    let nowMs = 0
    for (let sent = 0; sent < 4 * MAX_KEYS; sent++) {
      // Most requests are under one rule, so that it keeps the most counters.
      const table = draw(0, 3) === 0 ? draw(0, tables) : 0
      const hasEnded = ends.some((endsAtMs) => endsAtMs > 0 && endsAtMs <= nowMs)
      const { evictions } = pool
      const slot = pool.add(table, `key:${sent}`, windowsMs[table] ?? 0, nowMs)
      if (hasEnded && pool.evictions > evictions) evictedTooEarly += 1
      ends[slot] = nowMs + (windowsMs[table] ?? 0)
      pool.putLast(table, slot)
      nowMs += draw(0, 2 * 100) * (MINUTE_MS / 2000)
    }
    expect([tables, evictedTooEarly]).toEqual([tables, 0])
  }
})

test('ended counters of a table that came in place of one with a longer window go before running ones', () => {
  const ends: number[] = []
  const content = { endsAtMs: (slot: number) => ends[slot] ?? 0 }
  const pool = new SlotPool({ maxKeys: 4, seed: 42 }, new Uint32Array(4), content)
  const addOne = (table: number, key: string, windowMs: number, nowMs: number): void => {
    const slot = pool.add(table, key, windowMs, nowMs)
    ends[slot] = nowMs + windowMs
    pool.putLast(table, slot)
  }
  addOne(0, 'gone', 90 * MINUTE_MS, 0)
  for (const key of ['a', 'b', 'c', 'd']) addOne(1, key, 60 * MINUTE_MS, 0)
  expect(pool.evictions).toBe(1)
  pool.dropTables(new Set([0]))
  addOne(0, 'brief', MINUTE_MS, 0)
  addOne(1, 'e', 60 * MINUTE_MS, MINUTE_MS)
  expect([pool.evictions, pool.find(0, 'brief')]).toEqual([1, NONE])
})

test('no running token bucket is evicted while a full one is left, whatever requests cost and get refunded', () => {
  for (const tables of [1, 3, 40]) {
    const capacity = 60
    const buckets = new Buckets({ maxKeys: capacity, seed: 42 })
    const ends = new Map<string, number>()
    let nowMs = 0
    let evictedTooEarly = 0
    for (let sent = 0; sent < 30 * capacity; sent++) {
      nowMs += draw(0, 20_000)
      // Most requests are under one rule, and some clients return.
      const table = draw(0, 3) === 0 ? draw(0, tables) : 0
      const client = `key:${draw(0, 3) === 0 ? draw(0, sent) : sent}`
      const name = `${table} ${client}`
      const hasEnded = [...ends].some(([other, endsAtMs]) => other !== name && endsAtMs <= nowMs)
      const { evictions } = buckets.slots
      const slot = buckets.take(table, client, 60 * MINUTE_MS, draw(1, 61) ** 2 * 1_000, nowMs)
      if (draw(0, 3) === 0) buckets.giveBack(table, slot, buckets.debtMs(slot, nowMs) / draw(1, 3), nowMs)
      if (hasEnded && buckets.slots.evictions > evictions) evictedTooEarly += 1
      ends.set(name, nowMs + buckets.debtMs(slot, nowMs))
      for (const other of ends.keys()) {
        const [of = '', key = ''] = other.split(' ')
        if (buckets.slots.find(Number(of), key) === NONE) ends.delete(other)
      }
    }
    expect(buckets.slots.evictions).toBeGreaterThan(0)
    expect([tables, evictedTooEarly]).toEqual([tables, 0])
  }
})

test('a client that has used up its bucket stays limited while others that send little come and go', () => {
  let nowMs = 100
  const limiter = new MemoryLimiter({ maxKeys: MAX_KEYS, seed: 42, now: () => nowMs })
  const policy = makePolicy('burst', 100, 60 * MINUTE_MS, { algorithm: 'token-bucket' })
  const ask = (client: string): string => limiter.decide(chargeAll(client, [policy])).outcome
  for (let sent = 0; sent < 100; sent++) ask('greedy')
  // The buckets of these clients are full again after 36 seconds, so all of them fit.
  for (let sent = 0; sent < 5 * MAX_KEYS; sent++) {
    nowMs += MINUTE_MS / MAX_KEYS
    ask(`key:${sent}`)
  }
  for (let sent = 0; sent < 8; sent++) ask('greedy')
  expect(ask('greedy')).toBe('refused')
})

/** How often slots of the table are read for each new key when the table is full. */
function looksPerNewKey(tables: number): number {
  let looks = 0
  const capacity = 20_000
  const ends = new Float64Array(capacity)
  const content = {
    endsAtMs: (slot: number) => {
      looks += 1
      return ends[slot] ?? 0
    },
  }
  const pool = new SlotPool({ maxKeys: capacity, seed: 42 }, new Uint32Array(capacity), content)
  const addOne = (sent: number): void => {
    const table = draw(0, tables)
    const slot = pool.add(table, `key:${sent}`, MINUTE_MS, sent / 100)
    ends[slot] = sent / 100 + MINUTE_MS
    pool.putLast(table, slot)
  }
  for (let sent = 0; sent < 2 * capacity; sent++) addOne(sent)
  looks = 0
  for (let sent = 0; sent < 20_000; sent++) addOne(2 * capacity + sent)
  expect(pool.evictions).toBe(2 * capacity)
  return looks / 20_000
}

test('a new key in a full table looks at as few counters with 10,000 rules as with 10', () => {
  expect(looksPerNewKey(10)).toBeLessThan(10)
  expect(looksPerNewKey(10_000)).toBeLessThan(10)
})

/** How often the state of a table is read for each admission whose time does not fit. */
function readsPerTime(tables: number): number {
  const timeCapacity = 3_000
  const times = new AdmissionTimes({ maxKeys: 2 * timeCapacity, seed: 42 }, timeCapacity)
  const states = vi.spyOn(times.slots, 'stateOf')
  const admitOne = (sent: number): void => {
    const table = draw(0, tables)
    times.admit(table, `key:${draw(0, 4)}`, MINUTE_MS, sent / 100)
  }
  for (let sent = 0; sent < 2 * timeCapacity; sent++) admitOne(sent)
  states.mockClear()
  const { evictions } = times.slots
  for (let sent = 0; sent < 3_000; sent++) admitOne(2 * timeCapacity + sent)
  expect(times.slots.evictions).toBeGreaterThan(evictions)
  return states.mock.calls.length / 3_000
}

test('a time for which there is no room reads as few tables with 10,000 rules as with 100', () => {
  expect(readsPerTime(100)).toBeLessThan(10)
  expect(readsPerTime(10_000)).toBeLessThan(10)
})
