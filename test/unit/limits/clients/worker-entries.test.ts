import { expect, test, vi } from 'vitest'
import { createWorkerClientTable } from '../../../../proxy/limits/clients/worker-entries.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'
import { recordLog } from '../../../support/limiter/recordings.ts'

const login = makePolicy('login', 5, 60_000)

// Messages of a worker to a stopped primary process stay in the worker's memory, and clients determine their number.
test('while its primary process does not read, a worker reports one refusal a second, and then each again', () => {
  let nowMs = 0
  let isRead = true
  let sent = 0
  const { log, lines } = recordLog()
  const port = {
    send() {
      sent += 1
      return isRead
    },
    listen: () => undefined,
  }
  const table = createWorkerClientTable(port, {
    now: () => nowMs,
    telemetry: { observeTable: () => undefined },
    log,
  })
  const reportedIn = (seconds: number): number => {
    const before = sent
    for (const untilMs = nowMs + seconds * 1000; nowMs < untilMs; nowMs += 10)
      for (let i = 0; i < 10; i++) table.refused(login, `client ${i}`)
    return sent - before
  }
  expect(reportedIn(1)).toBe(1000)
  isRead = false
  expect(reportedIn(60)).toBe(60)
  isRead = true
  reportedIn(1)
  expect(reportedIn(1)).toBe(1000)
  // One line for the pause, with the number of refusals that were not reported in that minute.
  expect(lines).toMatchObject([{ refusals: 59_940 }])
})

test('refusals that were not reported are logged when no further one comes', () => {
  vi.useFakeTimers()
  try {
    const { log, lines } = recordLog()
    const port = { send: () => false, listen: () => undefined }
    const now = (): number => performance.now()
    const table = createWorkerClientTable(port, { now, telemetry: { observeTable: () => undefined }, log })
    const refuseFor = (seconds: number): void => {
      for (let times = 0; times < seconds * 10; times++) {
        table.refused(login, 'client')
        vi.advanceTimersByTime(100)
      }
    }
    refuseFor(10)
    expect(lines).toEqual([])
    vi.advanceTimersByTime(2000)
    expect(lines).toMatchObject([{ refusals: 90 }])
    vi.advanceTimersByTime(60_000)
    expect(lines).toHaveLength(1)
    refuseFor(1)
    table.close()
    expect(lines).toMatchObject([{ refusals: 90 }, { refusals: 9 }])
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
