import { expect, test } from 'vitest'
import { ConnectionLife } from '../../../../proxy/http/upstream/keep-alive/connection-life.ts'

// On a reused connection, a request without a body is sent again if the backend closes the connection without a response.

test('a connection is reused once it has served an exchange', () => {
  const life = new ConnectionLife(0, Infinity)
  life.beginExchange(() => 0)
  expect(life.isReused).toBe(false)
  expect(life.endExchange(5)).toBe(3005)
  life.beginExchange(() => 6)
  expect(life.isReused).toBe(true)
})

test.each([
  [0, false],
  [99, false],
  [100, true],
])('a connection opened for a client that left counts as reused after %i ms: %s', (waitedMs, isReused) => {
  const life = new ConnectionLife(1, Infinity)
  expect(life.beginWaiting(1000)).toBe(4000)
  life.beginExchange(() => 1000 + waitedMs)
  expect(life.isReused).toBe(isReused)
  // The exchange for which the connection was opened does not count against its maximum.
  expect(life.endExchange(2000)).toBeUndefined()
})
