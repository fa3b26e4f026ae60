import { expect, test } from 'vitest'
import { TwoGenerations } from '../../../../proxy/limits/store/two-generations.ts'

type Entry = { readonly endsAtMs: number }

function add(map: TwoGenerations<string, Entry>, key: string, nowMs = 0): void {
  map.makeRoom(nowMs)
  map.set('owner', key, { endsAtMs: 1_000 })
}

test('the older half goes when the younger is full, and is counted as evicted where it has not ended', () => {
  const map = new TwoGenerations<string, Entry>(4)
  for (const key of ['a', 'b', 'c', 'd']) add(map, key)
  expect(map.find('owner', 'a')).toBeDefined()
  expect(map.readUse()).toEqual({ size: 4, capacity: 4, evictions: 0 })
  add(map, 'e', 999)
  expect(map.find('owner', 'a')).toBeUndefined()
  expect(map.find('owner', 'c')).toBeDefined()
  expect(map.findYounger('owner', 'c')).toBeUndefined()
  expect(map.readUse()).toEqual({ size: 3, capacity: 4, evictions: 2 })
  add(map, 'f', 1_000)
  add(map, 'g', 1_000)
  expect(map.readUse().evictions).toBe(2)
})

test('an entry that is taken out of the older half, or deleted, leaves room', () => {
  const map = new TwoGenerations<string, Entry>(4)
  for (const key of ['a', 'b', 'c']) add(map, key)
  expect(map.takeOlder('owner', 'c')).toBeUndefined()
  expect(map.takeOlder('owner', 'a')).toBeDefined()
  expect(map.takeOlder('owner', 'a')).toBeUndefined()
  expect(map.size).toBe(2)
  map.deleteKey((owner) => owner === 'another', 'b')
  expect(map.size).toBe(2)
  map.deleteKey((owner) => owner === 'owner', 'b')
  map.deleteKey((owner) => owner === 'owner', 'c')
  expect(map.size).toBe(0)
  expect(map.tables().flatMap(([, entries]) => [...entries.keys()])).toEqual([])
})
