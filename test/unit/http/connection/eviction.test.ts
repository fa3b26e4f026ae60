import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createEviction } from '../../../../proxy/http/connection/eviction.ts'
import { chooseVictims, type Candidate } from '../../../../proxy/http/connection/eviction-order.ts'

type Named = Candidate<number>

/**
 * Chooses the expected victims one by one: the longest idle connection of the client with the most connections. If two clients have equally
 * many, the connection that has been idle longer goes first.
 */
function chooseOneByOne(candidates: readonly Named[], count: number): number[] {
  const left = [...candidates]
  const chosen: number[] = []
  const sizeOf = ({ client }: Named): number =>
    client === undefined ? 1 : left.filter((other) => other.client === client).length
  while (left.length > 0 && chosen.length < count) {
    const most = Math.max(...left.map(sizeOf))
    const [first] = left.filter((one) => sizeOf(one) === most).sort((x, y) => x.sinceMs - y.sinceMs)
    if (!first) break
    left.splice(left.indexOf(first), 1)
    chosen.push(first.subject)
  }
  return chosen
}

describe('victims', () => {
  test('chosen at once are those that would be chosen one by one', () => {
    const client = fc.constantFrom('a', 'b', 'c', 'd', undefined)
    fc.assert(
      fc.property(fc.array(client, { maxLength: 40 }), fc.nat(45), fc.nat(), (clients, count, seed) => {
        // Each connection has its own idle time, in random order.
        const candidates = clients.map((name, i): Named => {
          return { subject: i, client: name, sinceMs: (i * 7_919 + seed) % 7_927 }
        })
        const victims = chooseVictims(candidates, count)
        expect(victims.map(({ subject }) => subject)).toEqual(chooseOneByOne(candidates, count))
      }),
    )
  })

  test('victims are ranked by the number of connections that their client has when they are chosen', () => {
    const candidates = ['a', 'b', 'a', undefined, 'a'].map((name, i): Named => {
      return { subject: i, client: name, sinceMs: i }
    })
    expect(chooseVictims(candidates, 9).map(({ subject, rank }) => [subject, rank])).toEqual([
      [0, 3],
      [2, 2],
      [1, 1],
      [3, 1],
      [4, 1],
    ])
  })
})

type Fake = { readonly client: string; readonly openedMs: number; sinceMs: number | undefined }

/** A set of connections, with a clock that advances only by the cost of checking a connection. */
function startHouse(capacity: number) {
  const open = new Set<Fake>()
  let looks = 0
  let nowMs = 0
  const closed: { readonly fake: Fake; readonly state: string }[] = []
  const makeRoom = createEviction<Fake>({
    open,
    capacity,
    clientOf: ({ client }) => client,
    idleSince: ({ sinceMs }) => {
      looks++
      nowMs += 0.0001
      return sinceMs
    },
    openedAt: ({ openedMs }) => openedMs,
    close: (fake, state) => {
      open.delete(fake)
      closed.push({ fake, state })
    },
    now: () => nowMs,
  })
  const add = (client: string, sinceMs?: number): Fake => {
    const fake = { client, openedMs: open.size, sinceMs }
    open.add(fake)
    return fake
  }
  return { add, closed, makeRoom, looks: () => looks, pass: (ms: number) => (nowMs += ms) }
}

describe('at the connection limit', () => {
  test('at the connection limit, one search chooses many connections to close', () => {
    const house = startHouse(6_400)
    for (let i = 0; i < 6_400; i++) house.add(i % 2 === 0 ? 'a' : 'b', i)
    for (let i = 0; i < 1_000; i++) {
      expect(house.makeRoom(0)).toBe(true)
      house.add(`newcomer ${i}`, 10_000 + i)
    }
    // Ten checks of all connections, and one check of each victim, in case it is no longer idle.
    expect(house.looks()).toBe(10 * 6_400 + 1_000)
    expect(house.closed.map(({ fake }) => fake.sinceMs)).toEqual(Array.from({ length: 1_000 }, (_, i) => i))
  })

  test('at the connection limit, idle connections are not searched for again and again where nothing is idle', () => {
    const house = startHouse(640)
    for (let i = 0; i < 640; i++) house.add(`client ${i}`)
    for (let i = 0; i < 1_000; i++) expect(house.makeRoom(0)).toBe(false)
    expect(house.looks()).toBe(640)
    house.pass(1)
    expect(house.makeRoom(0)).toBe(false)
    expect(house.looks()).toBe(2 * 640)
  })

  test('at the connection limit, a connection that has become busy is not closed, and one that has become idle is', () => {
    const house = startHouse(128)
    const fakes = Array.from({ length: 128 }, (_, i) => house.add('a', i))
    expect(house.makeRoom(0)).toBe(true)
    for (const fake of fakes) fake.sinceMs = undefined
    const [, , third] = fakes
    if (third) third.sinceMs = 5_000
    expect(house.makeRoom(0)).toBe(true)
    expect(house.closed).toEqual([
      { fake: fakes[0], state: 'idle' },
      { fake: third, state: 'idle' },
    ])
  })

  test('at the connection limit, a client with eight times as many connections as the new one loses a busy one', () => {
    const house = startHouse(64)
    const many = Array.from({ length: 23 }, () => house.add('many'))
    for (let i = 0; i < 41; i++) house.add(`client ${i}`)
    expect(house.makeRoom(2)).toBe(false)
    expect(house.makeRoom(1)).toBe(true)
    expect(house.closed).toEqual([{ fake: many[0], state: 'busy' }])
  })
})
