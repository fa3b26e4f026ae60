import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Reservation } from '../../../../proxy/limits/limiter.ts'
import { TurnQueue, type Waiter } from '../../../../proxy/limits/waiting/turn-queue.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'
import { seededRandom } from '../../../support/random/seeded-random.ts'
import { testSeed } from '../../../support/random/seed.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const policy = makePolicy('paced', 1, 100, { algorithm: 'token-bucket' })

function reservationOf(units: number): Reservation {
  return { charge: { policy, partitionKey: 'a' }, units, isLocal: false, ticket: '' }
}

function open() {
  const settled: Reservation[] = []
  let isEmpty = false
  const queue = new TurnQueue({ settle: (reservation) => void settled.push(reservation) }, Date.now, () => {
    isEmpty = true
  })
  return { queue, settled, isEmpty: () => isEmpty }
}

test('when clients leave the queue, the others keep their order and get the turns that were not returned', () => {
  const random = seededRandom(testSeed())
  const draw = (from: number, to: number): number => from + Math.floor(random() * (to - from))
  for (let round = 0; round < 50; round++) {
    const { queue, settled, isEmpty } = open()
    const start = Date.now()
    const kinds = draw(1, 4)
    const passed: { at: number; id: number }[] = []
    const asked = Array.from({ length: draw(1, 60) }, (_, id) => ({
      id,
      dueMs: start + 100 * (id + 1),
      units: draw(1, kinds + 1),
      waiter: { notBeforeMs: 0, onTurn: () => void passed.push({ at: Date.now(), id }) } satisfies Waiter,
    }))
    const reservations = asked.map(({ units }) => reservationOf(units))
    for (const [id, { waiter, dueMs }] of asked.entries())
      queue.add(waiter, { dueMs, reservation: reservations[id] ?? reservationOf(0) })
    const left = new Set<number>()
    for (const { id, waiter } of asked) {
      if (draw(0, 3) > 0) continue
      if (draw(0, 2) === 0) vi.advanceTimersByTime(draw(0, 60))
      if (passed.some((other) => other.id === id)) continue
      queue.remove(waiter)
      left.add(id)
      queue.remove(waiter)
    }
    vi.advanceTimersByTime(100 * asked.length)
    // Waiters pass in order, once each. Each waiter that left gave back a turn of as many units.
    const stayed = asked.filter(({ id }) => !left.has(id))
    expect(passed.map(({ id }) => id)).toEqual(stayed.map(({ id }) => id))
    const unitsOf = (id: number): number => asked[id]?.units ?? 0
    expect(settled.map(({ units }) => units)).toEqual([...left].map(unitsOf))
    // The turns that were not given back were used, in order.
    const used = asked.filter((_, id) => !settled.includes(reservations[id] ?? reservationOf(0)))
    expect(passed.map(({ id }) => unitsOf(id))).toEqual(used.map(({ units }) => units))
    for (const [at, { at: passedMs }] of passed.entries())
      expect(passedMs).toBeGreaterThanOrEqual(used[at]?.dueMs ?? Infinity)
    expect(isEmpty()).toBe(true)
  }
})

test.each([1, 2])(
  'leaving the middle of a queue of 50,000 takes less than 100 us, with requests of %s costs',
  (kinds) => {
    const cost = (length: number): number => {
      const { queue } = open()
      const waiters = Array.from({ length }, (): Waiter => ({ notBeforeMs: 0, onTurn: () => undefined }))
      for (const [at, waiter] of waiters.entries())
        queue.add(waiter, { dueMs: Date.now() + 1000 + at, reservation: reservationOf(1 + (at % kinds)) })
      const before = process.cpuUsage()
      // Removes waiters from the middle of the queue.
      for (let at = 0; at < 500; at++) queue.remove(waiters[length / 2 + (at % 2 === 0 ? -at : at)] as Waiter)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 500
    }
    expect(Math.min(cost(50_000), cost(50_000))).toBeLessThan(100)
  },
)
