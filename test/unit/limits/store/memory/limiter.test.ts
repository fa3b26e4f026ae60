import { describe, expect, test, vi } from 'vitest'
import { MemoryLimiter } from '../../../../../proxy/limits/store/memory/limiter.ts'
import { chargeAll, makePolicy } from '../../../../support/limiter/charges.ts'
import { readTable } from '../../../../support/limiter/limiters.ts'

const short = makePolicy('short', 3, 1_000)
const long = makePolicy('long', 3, 10_000)
const ofFailures = { countStatus: [{ first: 401, last: 401 }] }

type Clocked = MemoryLimiter & { advance(durationMs: number): void }

function createLimiter(maxKeys: number): Clocked {
  let nowMs = 100
  const limiter = new MemoryLimiter({ maxKeys, seed: 42, now: () => nowMs })
  return Object.assign(limiter, { advance: (durationMs: number) => void (nowMs += durationMs) })
}

/** The remaining quota of the client after one more request: 2 if it had no counter. */
function remaining(limiter: MemoryLimiter, policy: typeof short, client: string): number {
  const decision = limiter.decide(chargeAll(client, [policy]))
  return decision.outcome === 'unavailable' ? NaN : (decision.states[0]?.remaining ?? NaN)
}

describe('the maximum number of counters in memory', () => {
  test('the maximum number of counters in memory is never exceeded by any sequence of requests', () => {
    const limiter = createLimiter(10)
    for (let client = 0; client < 1000; client++) {
      limiter.decide(chargeAll(`ip:${client}`, [short, long]))
      limiter.advance(client % 7)
      expect(readTable(limiter).size).toBeLessThanOrEqual(10)
    }
    expect(readTable(limiter)).toMatchObject({ capacity: 10 })
    expect(readTable(limiter).evictions).toBeGreaterThan(100)
  })

  test('the maximum number of counters in memory is not reached by requests that were given back as a whole', () => {
    const limiter = createLimiter(10)
    const failures = makePolicy('failures', 3, 60_000, { countStatus: [{ first: 500, last: 599 }] })
    for (let asked = 0; asked < 3; asked++) remaining(limiter, long, 'ip:used up')
    for (let asked = 0; asked < 1000; asked++) {
      const decision = limiter.decide(chargeAll(`ip:${asked % 3}`, [failures]))
      const [state] = decision.outcome === 'allowed' ? decision.states : []
      if (state?.reservation) limiter.settle(state.reservation, 0)
    }
    expect(readTable(limiter)).toEqual({ size: 1, capacity: 10, evictions: 0 })
    expect(limiter.decide(chargeAll('ip:used up', [long])).outcome).toBe('refused')
  })

  test('the counter whose window ends first is evicted, whatever its length and however often it was used', () => {
    const limiter = createLimiter(4)
    remaining(limiter, long, 'first long')
    limiter.advance(100)
    remaining(limiter, short, 'first short')
    limiter.advance(100)
    remaining(limiter, short, 'second short')
    remaining(limiter, long, 'second long')
    remaining(limiter, short, 'first short')

    remaining(limiter, long, 'third long')
    expect(readTable(limiter)).toMatchObject({ size: 4, evictions: 1 })
    expect(remaining(limiter, short, 'second short')).toBe(1)
    expect(remaining(limiter, long, 'first long')).toBe(1)
    expect(remaining(limiter, long, 'second long')).toBe(1)
    expect(remaining(limiter, long, 'third long')).toBe(1)
    expect(remaining(limiter, short, 'first short')).toBe(2)
  })

  test('the maximum number of counters in memory holds with a single counter', () => {
    const limiter = createLimiter(1)
    for (let i = 0; i < 5; i++) expect(remaining(limiter, short, `ip:${i}`)).toBe(2)
    expect(readTable(limiter)).toEqual({ size: 1, capacity: 1, evictions: 4 })
  })
})

describe('the time until a window resets', () => {
  test.each(['fixed', 'sliding'] as const)(
    'the time until a window resets is never more than the length of the window, %s',
    (algorithm) => {
      const policy = makePolicy('two-seconds', 3, 2_000, { algorithm })
      let nowMs = 100
      const limiter = new MemoryLimiter({ maxKeys: 1000, seed: 42, now: () => nowMs })
      for (let client = 0; client < 1000; client++) {
        // The clock has fractions of a millisecond. Without rounding, one reset in five is slightly longer than the window.
        nowMs += 0.8765432109876
        expect(limiter.decide(chargeAll(`ip:${client}`, [policy]))).toMatchObject({
          states: [{ resetMs: 2_000 }],
        })
        expect(limiter.read({ policy, partitionKey: `ip:${client}` })).toEqual({ used: 1, resetMs: 2_000 })
      }
    },
  )
})

describe('ended counters', () => {
  test('ended counters are reclaimed in passing, without a timer, so that they take no place', () => {
    const limiter = createLimiter(100)
    for (let i = 0; i < 100; i++) remaining(limiter, short, `ip:${i}`)
    limiter.advance(1_000)
    for (let i = 0; i < 60; i++) remaining(limiter, long, `other:${i}`)
    expect(readTable(limiter)).toEqual({ size: 60, capacity: 100, evictions: 0 })
  })

  test('a client that comes back after its counter has ended counts from the beginning, and not a millisecond earlier', () => {
    const limiter = createLimiter(100)
    for (const expected of [2, 1, 0, 0]) expect(remaining(limiter, short, 'ip:1')).toBe(expected)
    limiter.advance(999)
    expect(limiter.decide(chargeAll('ip:1', [short]))).toMatchObject({
      outcome: 'refused',
      states: [{ resetMs: 1 }],
    })
    limiter.advance(1)
    expect(limiter.decide(chargeAll('ip:1', [short]))).toMatchObject({
      outcome: 'allowed',
      states: [{ remaining: 2, resetMs: 1_000 }],
    })
  })

  test('ended counters leave the table as large as it needs to be when clients come and go for long', () => {
    const limiter = createLimiter(1_000)
    for (let i = 0; i < 50_000; i++) {
      limiter.decide(chargeAll(`ip:${i % 400}`, i % 3 === 0 ? [short, long] : [short]))
      limiter.advance(10)
      // In one window of each length there are at most 100 and 400 different clients.
      expect(readTable(limiter).size).toBeLessThan(650)
    }
    expect(readTable(limiter).evictions).toBe(0)
  })
})

describe('requests that the shared counters do not know', () => {
  test('requests that the shared counters do not know are handed out once, with their windows, and not those that have ended', () => {
    const limiter = createLimiter(100)
    limiter.decidePendingSync(chargeAll('gone', [short]))
    limiter.advance(1_000)
    limiter.decidePendingSync(chargeAll('a', [short, long]))
    limiter.decidePendingSync(chargeAll('a', [long]))
    limiter.decide(chargeAll('saved', [long]))
    expect(limiter.takePending(10)).toEqual([
      { policy: short, partitionKey: 'a', counted: [1], endsAtMs: 2_100 },
      { policy: long, partitionKey: 'a', counted: [2], endsAtMs: 11_100 },
    ])
    expect(limiter.hasPending()).toBe(false)
    expect(limiter.takePending(10)).toEqual([])
    limiter.decidePendingSync(chargeAll('a', [long]))
    expect(limiter.takePending(10)).toMatchObject([{ counted: [1] }])
    expect(limiter.decidePendingSync(chargeAll('a', [long]))).toMatchObject({ outcome: 'refused' })
    expect(limiter.hasPending()).toBe(false)
  })

  test('requests that the shared counters do not know are handed out in parts', () => {
    const limiter = createLimiter(100)
    for (let i = 0; i < 25; i++) limiter.decidePendingSync(chargeAll(`ip:${i}`, [long]))
    const parts = [10, 10, 10].map((limit) => limiter.takePending(limit))
    expect(parts.map((part) => part.length)).toEqual([10, 10, 5])
    expect(new Set(parts.flat().map(({ partitionKey }) => partitionKey)).size).toBe(25)
    expect(limiter.hasPending()).toBe(false)
  })

  test('requests that the shared counters do not know are forgotten with the counter that was evicted', () => {
    const limiter = createLimiter(2)
    for (const client of ['a', 'b', 'c']) limiter.decidePendingSync(chargeAll(client, [long]))
    expect(limiter.takePending(10).map(({ partitionKey }) => partitionKey)).toEqual(['c', 'b'])
    expect(limiter.hasPending()).toBe(false)
  })
})

test('whether a shard has counts pending sync is found by shard, however many clients were counted', () => {
  const shards = 4
  const limiter = new MemoryLimiter({
    maxKeys: 10_000,
    seed: 1,
    now: () => 1_000,
    shardOf: (client) => Number(client) % shards,
  })
  const policy = makePolicy('p', 5, 60_000)
  const odd = (shard: number): boolean => shard % 2 === 1
  for (let client = 0; client < 5_000; client++)
    limiter.decidePendingSync([{ policy, partitionKey: String(client) }])
  const asked = vi.fn(() => false)
  expect(limiter.hasPending(asked)).toBe(false)
  expect(asked).toHaveBeenCalledTimes(shards)

  expect(limiter.takePending(10_000, odd)).toHaveLength(2_500)
  expect([limiter.hasPending(odd), limiter.hasPending()]).toEqual([false, true])
  expect([...limiter.pendingShards()].sort()).toEqual([0, 2])
  expect(limiter.takePending(10_000)).toHaveLength(2_500)
  expect([limiter.hasPending(), limiter.pendingShards().size]).toEqual([false, 0])
})

test.each([
  makePolicy('fixed', 5, 60_000, ofFailures),
  makePolicy('day', 5, 86_400_000, { ...ofFailures, algorithm: 'calendar', calendar: { unit: 'day' } }),
  makePolicy('sliding', 5, 60_000, { ...ofFailures, algorithm: 'sliding' }),
  makePolicy('bucket', 5, 60_000, { ...ofFailures, algorithm: 'token-bucket' }),
])('$name: requests from before a reset give nothing back to the counter after it', (policy) => {
  let nowMs = 1000
  const limiter = new MemoryLimiter({
    maxKeys: 10,
    seed: 1,
    now: () => nowMs,
    wallNow: () => 86_400_000 + nowMs,
  })
  const charges = chargeAll('a', [policy])
  const reserve = () => {
    const decision = limiter.decide(charges)
    return decision.outcome === 'allowed'
      ? decision.states.flatMap(({ reservation }) => reservation ?? [])
      : []
  }
  const before = [1, 2, 3, 4, 5].flatMap(reserve)
  nowMs += 100
  limiter.forget('other', 'a')
  limiter.forget(policy.name, 'a')
  nowMs += 100
  const after = [1, 2, 3, 4, 5].flatMap(reserve)
  expect([before.length, after.length]).toEqual([5, 5])
  nowMs += 100
  for (const reservation of before) limiter.settle(reservation, 0)
  expect(reserve()).toEqual([])
  for (const reservation of after.slice(0, 2)) limiter.settle(reservation, 0)
  expect([1, 2, 3].flatMap(reserve)).toHaveLength(2)
})
