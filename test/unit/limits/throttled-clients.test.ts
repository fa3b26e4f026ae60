import { expect, test } from 'vitest'
import {
  createThrottledClients,
  type ThrottledClients,
} from '../../../proxy/limits/clients/throttled-clients.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../support/limiter/charges.ts'

const login = makePolicy('login', 5, 60_000)
const wide = makePolicy('wide', 100, 60_000)
const shadow = makePolicy('shadow', 1, 60_000, { mode: 'shadow' })

let nowMs = 0

function create(maxEntries: number): ThrottledClients {
  nowMs = 1_000
  return createThrottledClients(maxEntries, () => nowMs)
}

function refuse(clients: ThrottledClients, client: string, policy: Policy = login, resetMs = 500): void {
  const states = [wide, policy].map((each) => ({
    policy: each,
    exceeded: each === policy,
    remaining: each === policy ? 0 : 40,
    resetMs,
  }))
  const charges = chargeAll(client, [wide, policy])
  clients.record(
    charges,
    policy.mode === 'shadow'
      ? { outcome: 'allowed', states }
      : { outcome: 'refused', refusedBy: policy, states },
  )
}

test('the table lists clients with the most refusals first, shadows last, of one policy or of all, up to a limit', () => {
  const clients = create(100)
  for (let i = 0; i < 3; i++) refuse(clients, 'often')
  refuse(clients, 'once')
  for (let i = 0; i < 2; i++) refuse(clients, 'shadowed', shadow)
  expect(clients.list(undefined, 10).map(({ partitionKey, refusals }) => [partitionKey, refusals])).toEqual([
    ['often', 3],
    ['once', 1],
    ['shadowed', 2],
  ])
  expect(clients.list('login', 1)).toEqual([
    { policy: 'login', partitionKey: 'often', refusals: 3, resetMs: 500, isShadow: false },
  ])
})

test('the table drops a client when its window ends, and counts from zero in the next', () => {
  const clients = create(100)
  refuse(clients, 'a')
  nowMs += 500
  expect(clients.list(undefined, 10)).toEqual([])
  refuse(clients, 'a')
  expect(clients.list(undefined, 10)).toMatchObject([{ refusals: 1 }])
})

test('the table drops a client when a request of it passes: after a refund, with another plan, or under a higher limit', () => {
  const clients = create(100)
  for (const client of ['a', 'b']) refuse(clients, client)
  const states = [
    { policy: wide, exceeded: false, remaining: 40, resetMs: 500 },
    { policy: login, exceeded: false, remaining: 2, resetMs: 500 },
  ]
  clients.record(chargeAll('a', [wide, login]), { outcome: 'allowed', states })
  expect(clients.list(undefined, 10)).toMatchObject([{ partitionKey: 'b' }])
  refuse(clients, 'a')
  expect(clients.list(undefined, 10)).toMatchObject([{ refusals: 1 }, { refusals: 1 }])
})

test('the table keeps a client that another policy counts', () => {
  const clients = create(100)
  refuse(clients, 'a')
  const states = [{ policy: wide, exceeded: false, remaining: 40, resetMs: 500 }]
  clients.record(chargeAll('a', [wide]), { outcome: 'allowed', states })
  expect(clients.list(undefined, 10)).toMatchObject([{ policy: 'login', refusals: 1 }])
})

test('the table keeps clients that ask often through any flood, within its bound', () => {
  const clients = create(100)
  for (let i = 0; i < 10_000; i++) {
    refuse(clients, `flood ${i}`)
    if (i % 40 === 0) refuse(clients, 'often')
  }
  expect(clients.list(undefined, 1)).toMatchObject([{ partitionKey: 'often', refusals: 250 }])
  const { size, capacity, evictions } = clients.readUse()
  expect(size).toBeLessThanOrEqual(capacity)
  expect(evictions).toBeGreaterThan(9_000)
})

test('the table forgets one client under one policy or under all', () => {
  const clients = create(100)
  for (const policy of [login, shadow]) for (const client of ['a', 'b']) refuse(clients, client, policy)
  clients.forget('login', 'a')
  expect(clients.list(undefined, 10)).toHaveLength(3)
  clients.forget(undefined, 'b')
  expect(clients.list(undefined, 10)).toMatchObject([{ policy: 'shadow', partitionKey: 'a' }])
  expect(clients.readUse().size).toBe(1)
})

test('the table knows which of several clients under one policy was refused, even if another policy has no state', () => {
  const clients = create(100)
  const charges = [...chargeAll('one', [wide, login]), ...chargeAll('two', [login])]
  const states = [false, true].map((exceeded) => ({ policy: login, exceeded, remaining: 0, resetMs: 500 }))
  clients.record(charges, { outcome: 'refused', refusedBy: login, states })
  expect(clients.list(undefined, 10).map(({ partitionKey }) => partitionKey)).toEqual(['two'])
})

test('the table lists all clients that a policy refused, even if their quotas differ', () => {
  const clients = create(100)
  const more = makePolicy('login', 9, 60_000)
  const charges = [...chargeAll('one', [more]), ...chargeAll('two', [login])]
  const states = [more, login].map((policy) => ({ policy, exceeded: true, remaining: 0, resetMs: 500 }))
  clients.record(charges, { outcome: 'refused', refusedBy: more, states })
  expect(clients.list('login', 10).map(({ partitionKey }) => partitionKey)).toEqual(['one', 'two'])
})
