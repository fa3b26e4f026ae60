import { expect, test } from 'vitest'
import { ClientShares } from '../../../../proxy/http/upstream/waiting/client-shares.ts'

/** Lets clients take places in turn until none may take another. Returns how many each got. */
function fill(shares: ClientShares, clients: readonly string[]): number[] {
  const held = new Map(clients.map((client) => [client, 0]))
  for (let before = -1; before !== shares.total;) {
    before = shares.total
    for (const client of clients) {
      if (!shares.allows(client)) continue
      shares.add(client)
      held.set(client, (held.get(client) ?? 0) + 1)
    }
  }
  return [...held.values()]
}

test.each([
  [256, 3, 1, [193]],
  [256, 3, 2, [110, 110]],
  [256, 1, 1, [129]],
  [8, 3, 1, [7]],
  [1, 3, 1, [1]],
])(
  'of %i places, with shares of %i times the free ones, %i clients get %j',
  (max, times, clients, expected) => {
    const names = Array.from({ length: clients }, (_, i) => `client ${i}`)
    expect(fill(new ClientShares(max, times), names)).toEqual(expected)
  },
)

test('a client that holds no place gets one, whatever others hold', () => {
  for (const greedy of [1, 2, 10, 50]) {
    const shares = new ClientShares(256, 3)
    fill(
      shares,
      Array.from({ length: greedy }, (_, i) => `greedy ${i}`),
    )
    expect(shares.allows('other'), `${greedy} greedy clients`).toBe(true)
  }
})

test('a place that is given back can be had again', () => {
  const shares = new ClientShares(8, 3)
  fill(shares, ['a'])
  expect(shares.allows('a')).toBe(false)
  shares.remove('a')
  expect(shares.allows('a')).toBe(true)
  expect(shares.total).toBe(6)
  shares.remove('never seen')
  expect(shares.total).toBe(6)
})
