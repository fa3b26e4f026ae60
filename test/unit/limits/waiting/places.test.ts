import { expect, test } from 'vitest'
import { Places } from '../../../../proxy/limits/waiting/places.ts'

const countTaken = (places: Places, key: string, max: number, isShared = false): number => {
  let taken = 0
  while (places.take({ rule: 'rule', key, max, isShared })) taken += 1
  return taken
}

test('one client alone gets half of the places, and the next ones always find some', () => {
  const places = new Places()
  expect(['a', 'b', 'c'].map((key) => countTaken(places, key, 1000))).toEqual([500, 250, 125])
  expect(places.readUse()).toEqual({ size: 875, capacity: 1000, evictions: 0 })
})

test('all clients together may take every place, and no more', () => {
  expect(countTaken(new Places(), 'global', 7, true)).toBe(7)
  const places = new Places()
  for (let i = 0; i < 20; i++) places.take({ rule: 'rule', key: `client ${i}`, max: 7, isShared: false })
  expect(places.readUse().size).toBe(7)
})

test('places that are left are free again, and a rule without any takes no memory', () => {
  const places = new Places()
  const taken = countTaken(places, 'a', 9)
  for (let i = 0; i < taken; i++) places.leave({ rule: 'rule', key: 'a' })
  places.leave({ rule: 'rule', key: 'a' })
  expect(places.readUse()).toEqual({ size: 0, capacity: 0, evictions: 0 })
  expect(countTaken(places, 'b', 9)).toBe(taken)
})

test('asking for a place does not take it, and says whether it could be taken', () => {
  const places = new Places()
  const first = { rule: 'rule', key: 'a', max: 3, isShared: false }
  expect(places.hasPlace(first)).toBe(true)
  expect(places.readUse().size).toBe(0)
  places.take(first)
  for (const [key, max, isShared] of [
    ['a', 3, false],
    ['a', 2, false],
    ['a', 2, true],
    ['b', 1, true],
    ['b', 2, false],
  ] as const) {
    const place = { rule: 'rule', key, max, isShared }
    const isFree = places.hasPlace(place)
    expect(places.take(place), `${key} ${max}`).toBe(isFree)
    if (isFree) places.leave(place)
  }
})
