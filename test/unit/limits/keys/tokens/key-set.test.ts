import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { KeySet } from '../../../../../proxy/limits/keys/tokens/key-set.ts'

let answers: (string | Error)[]
let warnings: { reason: string }[]
let loads: number
let outcomes: string[]
let source: KeySet

beforeEach(() => {
  vi.useFakeTimers()
  loads = 0
  outcomes = []
})
afterEach(() => {
  source.close()
  vi.useRealTimers()
})

function start(...given: (string | Error)[]): void {
  answers = given
  warnings = []
  source = new KeySet({
    load: () => {
      const answer = answers[Math.min(loads++, answers.length - 1)]
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? '')
    },
    telemetry: { keySetLoaded: (outcome) => void outcomes.push(outcome) },
    log: { info: () => undefined, warn: (fields: { reason: string }) => void warnings.push(fields) },
    // The clock of `vi`, which this test advances.
    now: () => Date.now(),
  })
}

test('a key set is loaded at start and every five minutes', async () => {
  start('one', 'two')
  expect(source.current()).toBeUndefined()
  await source.ready(1000)
  expect(source.current()).toBe('one')
  await vi.advanceTimersByTimeAsync(299_999)
  expect(source.current()).toBe('one')
  await vi.advanceTimersByTimeAsync(1)
  expect(source.current()).toBe('two')
  expect(outcomes).toEqual(['loaded', 'loaded'])
})

test('a key set is retried a second after a failure, and the last loaded one stays', async () => {
  start(new Error('away'), 'one', new Error('away'), 'two')
  await source.ready(1000)
  expect(source.current()).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(source.current()).toBe('one')
  await vi.advanceTimersByTimeAsync(300_000)
  expect(source.current()).toBe('one')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(source.current()).toBe('two')
  expect(outcomes).toEqual(['failed', 'loaded', 'failed', 'loaded'])
})

test('a key set is retried with a delay that doubles, up to ten seconds', async () => {
  start(...Array.from({ length: 8 }, () => new Error('away')))
  await source.ready(1000)
  const waits: number[] = []
  let seconds = 0
  for (let known = loads; waits.length < 6;) {
    await vi.advanceTimersByTimeAsync(1_000)
    seconds++
    if (loads === known) continue
    known = loads
    waits.push(seconds)
    seconds = 0
  }
  expect(waits).toEqual([1, 2, 4, 8, 10, 10])
})

test('a key set is loaded again for a missing key, once in ten seconds', async () => {
  start('one', 'two', 'three')
  await source.ready(1000)
  source.keyMissing()
  await vi.advanceTimersByTimeAsync(9_999)
  expect(loads).toBe(1)
  await vi.advanceTimersByTimeAsync(1)
  for (let i = 0; i < 100; i++) source.keyMissing()
  await vi.advanceTimersByTimeAsync(0)
  expect([loads, source.current()]).toEqual([2, 'two'])
})

test('startup waits for the key set only briefly', async () => {
  start('one')
  source.close()
  source = new KeySet({
    load: () => new Promise(() => undefined),
    telemetry: { keySetLoaded: () => undefined },
    log: { info: () => undefined, warn: () => undefined },
    // The clock of `vi`, which this test advances.
    now: () => Date.now(),
  })
  const ready = source.ready(1000)
  await vi.advanceTimersByTimeAsync(1000)
  await ready
  expect(source.current()).toBeUndefined()
})

test('the log warns once of each version of a key set with keys that no token is tried with', async () => {
  const keySet = (keys: number): string =>
    JSON.stringify({ keys: Array.from({ length: keys }, () => ({ kty: 'EC', crv: 'P-521' })) })
  start(keySet(1), keySet(2), keySet(2), keySet(3))
  await source.ready(1000)
  expect(warnings).toEqual([])
  await vi.advanceTimersByTimeAsync(600_000)
  expect(warnings).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(300_000)
  expect(warnings.map(({ reason }) => reason.split(' without')[0])).toEqual([
    '1 of its keys (P-521)',
    '2 of its keys (P-521)',
  ])
})
