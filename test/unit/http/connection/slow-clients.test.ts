import { EventEmitter } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { PacedExchange } from '../../../../proxy/http/connection/client-progress.ts'
import { SlowClients } from '../../../../proxy/http/connection/slow-clients.ts'

/** A response that was handed over whole, of which the client takes a byte now and then. */
function createExchange(unreadBytes: number) {
  const state = { isEnded: false }
  const response = { writableEnded: true, headersSent: true, writableLength: unreadBytes, framedBytes: 0 }
  const exchange = {
    request: { socket: new EventEmitter() },
    response,
    forwarding: undefined,
    isFinished: false,
    client: '192.0.2.1',
    place: -1,
    guard: (step: () => void) => step(),
    onTooSlow: () => (state.isEnded = true),
  } as unknown as PacedExchange
  return { state, response, exchange }
}

test.each([
  ['while unread responses take little memory', 100_000, false],
  ['but not while they take much', 600_000, true],
])('a client that takes single bytes of a response may go on, %s', (_, unreadBytes, isEnded) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setImmediate'] })
  onTestFinished(() => void vi.useRealTimers())
  let nowMs = 0
  const watched = new SlowClients(
    { bodyTimeoutMs: 10_000, minBodyRate: 0, sendTimeoutMs: 1_000, maxUnreadBytes: 1_000_000 },
    () => nowMs,
    () => undefined,
  )
  const { state, response, exchange } = createExchange(unreadBytes)
  watched.add(exchange)
  for (let i = 0; i < 20; i++) {
    response.framedBytes += 1
    nowMs += 250
    vi.advanceTimersByTime(250)
  }
  watched.close()
  expect(state.isEnded).toBe(isEnded)
})
