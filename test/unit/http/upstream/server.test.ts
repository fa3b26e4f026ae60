import { afterEach, expect, test, vi } from 'vitest'
import type { UpstreamPool } from '../../../../proxy/http/upstream/pool.ts'
import { Server } from '../../../../proxy/http/upstream/servers/server.ts'

const place = { url: new URL('http://a'), address: undefined }
const unopened = (): never => {
  throw new Error('no connection is needed')
}

function failed(times: number, mayEject = true): Server {
  const server = new Server(place, unopened)
  for (let i = 0; i < times; i++) server.recordFailure('refused', 0, mayEject)
  return server
}

test('three failures in a row eject a server for a second, unless it is the last', () => {
  expect(failed(2).isAvailable(0)).toBe(true)
  expect(failed(9, false).isAvailable(0)).toBe(true)
  const server = failed(3)
  expect([server.isAvailable(999), server.isAvailable(1_000)]).toEqual([false, true])
})

test('one request tries an ejected server, and another one only after the same time again', () => {
  const server = failed(3)
  server.begin(1_000)
  expect([server.isAvailable(1_000), server.isAvailable(2_000)]).toEqual([false, true])
  server.recordSuccess()
  expect(server.isAvailable(1_001)).toBe(true)
})

test('each further failure ejects a server for twice as long, up to a minute', () => {
  const server = failed(3)
  let nowMs = 1_000
  for (const seconds of [2, 4, 8, 16, 32, 60, 60]) {
    server.begin(nowMs)
    server.recordFailure('timeout', nowMs, true)
    // A request that was sent earlier also fails.
    server.recordFailure('timeout', nowMs, true)
    expect(server.isAvailable(nowMs + seconds * 1000 - 1)).toBe(false)
    nowMs += seconds * 1000
    expect(server.isAvailable(nowMs)).toBe(true)
  }
})

test('neither failures with a response in between nor failures outside the server eject it', () => {
  const server = failed(2)
  server.recordSuccess()
  server.recordFailure('reset', 0, true)
  for (const kind of ['idle-timeout', 'aborted', 'busy', 'local-limit', 'exception'] as const)
    for (let i = 0; i < 5; i++) server.recordFailure(kind, 0, true)
  expect(server.isAvailable(0)).toBe(true)
})

afterEach(() => vi.useRealTimers())

test('a server that is gone waits two minutes for requests that were on their way to it', () => {
  vi.useFakeTimers()
  const pool = { busy: 0, isEnded: false, destroy: () => (pool.isEnded = true) }
  const server = new Server(place, () => pool as unknown as UpstreamPool)
  server.retire(() => performance.now())
  vi.advanceTimersByTime(60_000)
  // Its first request was waiting for a decision when the server was removed.
  expect(server.pool.busy).toBe(0)
  pool.busy = 1
  vi.advanceTimersByTime(300_000)
  expect(pool.isEnded).toBe(false)
  pool.busy = 0
  vi.advanceTimersByTime(119_000)
  expect(server.hasEnded).toBe(false)
  vi.advanceTimersByTime(2_000)
  expect([server.hasEnded, pool.isEnded]).toEqual([true, true])
})
