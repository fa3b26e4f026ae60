import { expect, test } from 'vitest'
import { OverLimitCache } from '../../../../proxy/limits/store/over-limit-cache.ts'
import type { Charge, Decision, PolicyState } from '../../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

const login = makePolicy('login', 5, 60_000)
const wide = makePolicy('wide', 100, 30_000)

let nowMs = 0

function createCache(maxEntries: number): OverLimitCache {
  nowMs = 1_000
  return new OverLimitCache(maxEntries, () => nowMs)
}

function refusalOf(
  charges: readonly Charge[],
  by: Policy,
  resetMs: number,
): Decision & { outcome: 'refused' } {
  const states = charges.map(({ policy }): PolicyState =>
    policy === by
      ? { policy, exceeded: true, remaining: 0, resetMs }
      : { policy, exceeded: false, remaining: 40, resetMs: 2_000 },
  )
  return { outcome: 'refused', refusedBy: by, states }
}

function recordRefusal(cache: OverLimitCache, charges: readonly Charge[], by: Policy, resetMs: number): void {
  cache.record(charges, refusalOf(charges, by, resetMs), nowMs, Infinity)
}

test('the cache reports the border of a calendar window that has ended since', () => {
  const atMs = Date.parse('2027-02-01T00:00:10Z')
  const cache = new OverLimitCache(
    100,
    () => nowMs,
    () => atMs,
  )
  nowMs = 1_000
  const monthly = makePolicy('monthly', 100, 1, { algorithm: 'calendar', calendar: { unit: 'month' } })
  const charges = chargeAll('ip:1', [login, monthly])
  recordRefusal(cache, charges, login, 60_000)
  nowMs += 2_000
  const refusal = cache.findRefusal(charges)
  expect(refusal).toMatchObject({
    states: [{}, { remaining: 100, resetMs: Date.parse('2027-03-01T00:00Z') - atMs }],
  })
})

test('the cache refuses a client until its window ends, not a millisecond longer, with the exact time left', () => {
  const cache = createCache(100)
  const charges = chargeAll('ip:1', [login])
  expect(cache.findRefusal(charges)).toBeUndefined()
  recordRefusal(cache, charges, login, 500)
  nowMs += 499
  expect(cache.findRefusal(charges)).toEqual({
    outcome: 'refused',
    refusedBy: login,
    states: [{ policy: login, exceeded: true, remaining: 0, resetMs: 1 }],
  })
  nowMs += 1
  expect(cache.findRefusal(charges)).toBeUndefined()
})

test('the cache refuses only as long as it is certain, and reports the rest of the window', () => {
  const cache = createCache(100)
  const charges = chargeAll('ip:1', [login])
  cache.record(charges, refusalOf(charges, login, 500), nowMs, 200)
  nowMs += 199
  expect(cache.findRefusal(charges)).toMatchObject({ states: [{ resetMs: 301 }] })
  nowMs += 1
  expect(cache.findRefusal(charges)).toBeUndefined()
})

test('the cache subtracts the time that the question took', () => {
  const cache = createCache(100)
  const charges = chargeAll('ip:1', [login])
  const askedAtMs = nowMs
  nowMs += 80
  cache.record(charges, refusalOf(charges, login, 500), askedAtMs, Infinity)
  nowMs += 419
  expect(cache.findRefusal(charges)).toMatchObject({ states: [{ resetMs: 1 }] })
  nowMs += 1
  expect(cache.findRefusal(charges)).toBeUndefined()
})

test('the cache does not refuse other clients, other policies, or other requests of the same client', () => {
  const cache = createCache(100)
  recordRefusal(cache, chargeAll('ip:1', [login]), login, 500)
  expect(cache.findRefusal(chargeAll('ip:2', [login]))).toBeUndefined()
  expect(cache.findRefusal(chargeAll('ip:1', [wide]))).toBeUndefined()
  expect(cache.findRefusal(chargeAll('ip:1', [wide, login]))).toBeUndefined()
})

test('the cache reports the states of the other policies, and an ended window as not begun', () => {
  const cache = createCache(100)
  const charges = chargeAll('ip:1', [wide, login])
  recordRefusal(cache, charges, login, 5_000)
  nowMs += 1_500
  expect(cache.findRefusal(charges)).toMatchObject({
    refusedBy: login,
    states: [
      { policy: wide, exceeded: false, remaining: 40, resetMs: 500 },
      { policy: login, exceeded: true, remaining: 0, resetMs: 3_500 },
    ],
  })
  nowMs += 1_000
  expect(cache.findRefusal(charges)).toMatchObject({
    states: [{ policy: wide, exceeded: false, remaining: 100, resetMs: 30_000 }, { resetMs: 2_500 }],
  })
})

test('a cached refusal has no state of another policy for another key', () => {
  const cache = createCache(100)
  const chargesOf = (key: string): Charge[] => [
    { policy: wide, partitionKey: key },
    { policy: login, partitionKey: 'ip:1' },
  ]
  recordRefusal(cache, chargesOf('key:a'), login, 5_000)
  const state = { policy: login, exceeded: true, remaining: 0, resetMs: 5_000 }
  expect(cache.findRefusal(chargesOf('key:a'))).toMatchObject({
    states: [{ policy: wide, remaining: 40 }, state],
  })
  expect(cache.findRefusal(chargesOf('key:b'))).toEqual({
    outcome: 'refused',
    refusedBy: login,
    states: [state],
  })
})

test('the cache does not take a client for another one that counts under the same policy', () => {
  const cache = createCache(100)
  const chargesOf = (...keys: string[]): Charge[] =>
    keys.map((partitionKey) => ({ policy: login, partitionKey }))
  const asked = chargesOf('user:over', 'user:other')
  const states = [true, false].map((exceeded) => ({ policy: login, exceeded, remaining: 0, resetMs: 5_000 }))
  cache.record(asked, { outcome: 'refused', refusedBy: login, states }, nowMs, Infinity)
  expect(cache.findRefusal(asked)).toMatchObject({ states })
  expect(cache.findRefusal(chargesOf('user:victim', 'user:over'))).toBeUndefined()
  expect(cache.findRefusal(chargesOf('user:over', 'user:victim'))).toBeUndefined()
})

test('the cache is bounded, and keeps the clients that were added last', () => {
  const cache = createCache(100)
  for (let i = 0; i < 1_000; i++) {
    recordRefusal(
      cache,
      chargeAll(`ip:${i}`, [i % 2 === 0 ? login : wide]),
      i % 2 === 0 ? login : wide,
      5_000,
    )
    expect(cache.readUse().size).toBeLessThanOrEqual(100)
  }
  expect(cache.readUse()).toMatchObject({ capacity: 100 })
  expect(cache.readUse().evictions).toBeGreaterThanOrEqual(900)
  for (let i = 950; i < 1_000; i++) {
    expect(cache.findRefusal(chargeAll(`ip:${i}`, [i % 2 === 0 ? login : wide]))).toBeDefined()
  }
  expect(cache.findRefusal(chargeAll('ip:0', [login]))).toBeUndefined()
})

test('the cache counts no eviction if the dropped entry has ended', () => {
  const cache = createCache(4)
  for (let i = 0; i < 40; i++) {
    recordRefusal(cache, chargeAll(`ip:${i}`, [login]), login, 10)
    nowMs += 10
  }
  expect(cache.readUse().evictions).toBe(0)
})

test('the cache forgets one client under one policy name', () => {
  const cache = createCache(100)
  recordRefusal(cache, chargeAll('ip:1', [login]), login, 5_000)
  recordRefusal(cache, chargeAll('ip:1', [wide]), wide, 5_000)
  recordRefusal(cache, chargeAll('ip:2', [login]), login, 5_000)
  cache.forget('login', 'ip:1')
  expect(cache.findRefusal(chargeAll('ip:1', [login]))).toBeUndefined()
  expect(cache.findRefusal(chargeAll('ip:1', [wide]))).toBeDefined()
  expect(cache.findRefusal(chargeAll('ip:2', [login]))).toBeDefined()
  expect(cache.readUse().size).toBe(2)
})

test('the cache reports one more request left in a sliding window once the oldest has left it, and the refusal stays', () => {
  const cache = createCache(100)
  const sliding = { ...wide, algorithm: 'sliding' as const }
  const charges = chargeAll('ip:1', [sliding, login])
  recordRefusal(cache, charges, login, 5_000)
  nowMs += 1_999
  expect(cache.findRefusal(charges)).toMatchObject({ states: [{ remaining: 40, resetMs: 1 }, {}] })
  nowMs += 1
  expect(cache.findRefusal(charges)).toMatchObject({
    refusedBy: login,
    states: [{ exceeded: false, remaining: 41, resetMs: 0 }, { resetMs: 3_000 }],
  })
})

test('the cache ignores a refusal that was asked for before a client was forgotten: it may be older than the reset', () => {
  const cache = createCache(100)
  const charges = chargeAll('ip:1', [login])
  const askedAtMs = nowMs
  nowMs += 10
  cache.forget('login', 'ip:1')
  cache.record(charges, refusalOf(charges, login, 500), askedAtMs, Infinity)
  expect(cache.findRefusal(charges)).toBeUndefined()
  nowMs += 1
  recordRefusal(cache, charges, login, 500)
  expect(cache.findRefusal(charges)).toBeDefined()
  cache.clear()
  expect(cache.findRefusal(charges)).toBeUndefined()
  expect(cache.readUse().size).toBe(0)
})

test('knows which of several clients under one policy is over its limit', () => {
  const cache = createCache(100)
  const charges = ['one', 'two'].map((partitionKey) => ({ policy: login, partitionKey }))
  const states = [false, true].map((exceeded) => ({ policy: login, exceeded, remaining: 0, resetMs: 500 }))
  cache.record(charges, { outcome: 'refused', refusedBy: login, states }, nowMs, Infinity)
  expect(cache.findOverLimit({ policy: login, partitionKey: 'one' })).toBeUndefined()
  expect(cache.findOverLimit({ policy: login, partitionKey: 'two' })).toBe(500)
})

test('after requests of a client were given back, a refusal that was requested before is recorded for other clients only', () => {
  const cache = createCache(100)
  const [near, far] = [chargeAll('ip:1', [login]), chargeAll('ip:2', [login])]
  recordRefusal(cache, near, login, 60_000)
  const askedAtMs = nowMs
  nowMs += 10
  for (const charge of near) cache.gaveBack(charge)
  expect(cache.findRefusal(near)).toBeUndefined()
  for (const charges of [near, far])
    cache.record(charges, refusalOf(charges, login, 60_000), askedAtMs, Infinity)
  expect(cache.findRefusal(near)).toBeUndefined()
  expect(cache.findRefusal(far)).toBeDefined()
  nowMs += 10
  recordRefusal(cache, near, login, 60_000)
  expect(cache.findRefusal(near)).toBeDefined()
})

test('no refusal that was requested before is recorded where requests of too many clients were given back', () => {
  const cache = createCache(100)
  const charges = chargeAll('ip:1', [login])
  const askedAtMs = nowMs
  nowMs += 10
  for (const charge of charges) cache.gaveBack(charge)
  for (let i = 0; i < 5_000; i++)
    for (const charge of chargeAll(`ip:other-${i}`, [login])) cache.gaveBack(charge)
  cache.record(charges, refusalOf(charges, login, 60_000), askedAtMs, Infinity)
  expect(cache.findRefusal(charges)).toBeUndefined()
})
