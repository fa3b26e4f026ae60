import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MemoryLimiter } from '../../../../proxy/limits/store/memory/limiter.ts'
import { Waiting } from '../../../../proxy/limits/waiting/waiting.ts'
import type { Decision, Limiter, Turn } from '../../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

// One request each 100 ms; ten may wait for up to a second.
const paced = makePolicy('paced', 1, 100, {
  algorithm: 'token-bucket',
  over: { delayMs: 1000, waiting: 20 },
})

// The tests advance the clock of `Date.now`.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Outcome = { readonly turn: Turn | undefined; readonly decision: Decision }

function open(isLate = false): {
  ask: (client: string, name: string, policies?: readonly Policy[]) => Promise<Outcome>
  passed: string[]
  delays: number[]
} {
  const counters = new MemoryLimiter({ maxKeys: 100, seed: 1, now: () => Date.now() })
  const passed: string[] = []
  const delays: number[] = []
  const waiting = new Waiting(() => Date.now(), {
    delayed: (_, durationMs) => void delays.push(durationMs),
    observeTable: () => undefined,
  })
  const limiter: Limiter = waiting.delaying({
    decide: (charges) => (isLate ? Promise.resolve(counters.decide(charges)) : counters.decide(charges)),
    settle: (...settlement) => counters.settle(...settlement),
  })
  const startedMs = Date.now()
  return {
    passed,
    delays,
    async ask(client, name, policies = [paced]) {
      const decision = await limiter.decide(policies.map((policy) => ({ policy, partitionKey: client })))
      const turn = decision.outcome === 'allowed' ? decision.turn : undefined
      turn?.wait(() => passed.push(`${name} at ${Date.now() - startedMs}`))
      return { turn, decision }
    },
  }
}

test.each([false, true])(
  'requests of a client go on in order, each at its turn (answered later: %s)',
  async (isLate) => {
    const { ask, passed, delays } = open(isLate)
    expect((await ask('a', 'first')).turn).toBeUndefined()
    for (const name of ['second', 'third', 'fourth']) await ask('a', name)
    expect((await ask('b', 'other')).turn).toBeUndefined()
    vi.advanceTimersByTime(1000)
    expect(passed).toEqual(['second at 100', 'third at 200', 'fourth at 300'])
    expect(delays).toEqual([100, 200, 300])
  },
)

test('a client that disconnects gives its turn to the next one, and the last turn becomes free', async () => {
  const { ask, passed } = open()
  await ask('a', 'first')
  const turns = []
  for (const name of ['second', 'third', 'fourth']) turns.push((await ask('a', name)).turn)
  turns[0]?.leave()
  vi.advanceTimersByTime(50)
  await ask('a', 'fifth')
  vi.advanceTimersByTime(1000)
  expect(passed).toEqual(['third at 100', 'fourth at 200', 'fifth at 300'])
})

test('however many clients disconnect, the turns of all become free', async () => {
  const slow = makePolicy('slow', 1, 1000, {
    algorithm: 'token-bucket',
    over: { delayMs: 60_000, waiting: 99 },
  })
  const { ask, passed } = open()
  await ask('a', 'first', [slow])
  const turns = []
  for (let i = 0; i < 60; i++) turns.push((await ask('a', `waiter ${i}`, [slow])).turn)
  vi.advanceTimersByTime(1100)
  expect(passed).toEqual(['waiter 0 at 1000'])
  for (const turn of turns) turn?.leave()
  await ask('a', 'next', [slow])
  vi.advanceTimersByTime(60_000)
  expect(passed).toEqual(['waiter 0 at 1000', 'next at 2000'])
})

test('however many clients disconnect, never more than one request continues in each interval', async () => {
  const { ask, passed } = open()
  await ask('a', 'first')
  for (let round = 0; round < 30; round++) {
    const asked: Outcome[] = []
    for (let i = 0; i < 8; i++) asked.push(await ask('a', `${round}.${i}`))
    for (const [at, { turn }] of asked.entries()) if ((at * 7 + round) % 3 === 0) turn?.leave()
    vi.advanceTimersByTime(130)
  }
  vi.advanceTimersByTime(2000)
  const times = passed.map((line) => Number(line.split(' at ')[1]))
  expect(times.length).toBeGreaterThan(30)
  for (const [at, time] of times.entries())
    if (at > 0) expect(time - (times[at - 1] ?? 0)).toBeGreaterThanOrEqual(100)
})

test('a process that was held up lets those whose turn has come go on in order', async () => {
  const { ask, passed } = open()
  await ask('a', 'first')
  for (const name of ['second', 'third', 'fourth']) await ask('a', name)
  vi.setSystemTime(Date.now() + 250)
  vi.advanceTimersByTime(100)
  expect(passed.map((line) => line.split(' ')[0])).toEqual(['second', 'third', 'fourth'])
})

test('requests beyond the number that may wait are refused, and do not count', async () => {
  const { ask } = open()
  const outcomes: string[] = []
  for (let i = 0; i < 14; i++) outcomes.push((await ask('a', String(i))).decision.outcome)
  // Ten fit into a second, and a single client gets half of the 20 places.
  expect(outcomes).toEqual([...Array<string>(11).fill('allowed'), 'refused', 'refused', 'refused'])
  vi.advanceTimersByTime(100)
  expect((await ask('a', 'again')).decision.outcome).toBe('allowed')
})

test('without a free place a request is refused under the policy of the table, but passes if it need not wait', async () => {
  const { ask } = open()
  const tight = makePolicy('tight', 1, 100, {
    algorithm: 'token-bucket',
    over: { delayMs: 1000, waiting: 1 },
  })
  const asked: Outcome[] = []
  for (const client of ['a', 'a', 'b', 'b']) asked.push(await ask(client, client, [tight]))
  expect(asked.map(({ decision, turn }) => (turn ? 'waits' : decision.outcome))).toEqual([
    'allowed',
    'waits',
    'allowed',
    'refused',
  ])
  expect(asked[3]?.decision).toMatchObject({ refusedBy: tight, states: [{ policy: tight, exceeded: true }] })
})

test('a request under several rules waits for the longest, and leaves the queues of all', async () => {
  const { ask, passed } = open()
  const slow = makePolicy('slow', 1, 300, { algorithm: 'token-bucket', over: { delayMs: 1000, waiting: 20 } })
  await ask('a', 'first', [paced, slow])
  const { turn } = await ask('a', 'second', [paced, slow])
  await ask('a', 'third', [paced, slow])
  turn?.leave()
  vi.advanceTimersByTime(2000)
  expect(passed).toEqual(['third at 300'])
})

test('a rule in shadow delays nothing', async () => {
  const { ask } = open()
  const shadow: Policy = { ...paced, mode: 'shadow' }
  const asked: Outcome[] = []
  for (let i = 0; i < 13; i++) asked.push(await ask('a', String(i), [shadow]))
  expect(asked.every(({ turn, decision }) => !turn && decision.outcome === 'allowed')).toBe(true)
})
