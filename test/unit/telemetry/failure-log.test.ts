import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createFailureLog } from '../../../proxy/telemetry/failure-log.ts'
import { UpstreamFailure, type FailureKind } from '../../../proxy/http/upstream/failure.ts'

let lines: unknown[]
let failed: ReturnType<typeof createFailureLog>

beforeEach(() => {
  vi.useFakeTimers()
  lines = []
  const write = (text: string): number => lines.push(JSON.parse(text))
  failed = createFailureLog(pino({ base: null, timestamp: false }, { write }))
})
afterEach(() => {
  vi.useRealTimers()
})

function fail(kind: FailureKind, requests = 1): void {
  for (let sent = 0; sent < requests; sent++) failed(new UpstreamFailure(kind, `it is ${kind}`), 'an id')
}

const busyLine = (requests: number) => ({
  level: 40,
  requests,
  reason: 'it is busy',
  settings: 'UPSTREAM_CONNECTIONS, UPSTREAM_QUEUE, UPSTREAM_CONNECT_TIMEOUT',
  msg: 'requests answered 503: no connection to the backend is free',
})

test('a busy backend is logged at once, then every five seconds with the number of requests since', () => {
  fail('busy')
  expect(lines.splice(0)).toEqual([busyLine(1)])
  fail('busy', 7)
  vi.advanceTimersByTime(4_999)
  fail('busy', 2)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(1)
  expect(lines.splice(0)).toEqual([busyLine(9)])
  fail('busy', 3)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(5_000)
  expect(lines.splice(0)).toEqual([busyLine(3)])
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual([])
  fail('busy')
  expect(lines).toEqual([busyLine(1)])
})

test('any other failure has a line of its own', () => {
  fail('reset', 2)
  fail('aborted')
  const failure = {
    level: 40,
    requestId: 'an id',
    kind: 'reset',
    reason: 'it is reset',
    msg: 'request to the backend failed',
  }
  expect(lines).toEqual([
    failure,
    failure,
    { level: 40, requestId: 'an id', reason: 'it is aborted', msg: 'request aborted by the gateway' },
  ])
})

test('a limit of this machine is logged as seldom, and not as a failure of the backend', () => {
  fail('local-limit', 200)
  fail('busy')
  expect(lines.splice(0)).toEqual([
    {
      level: 50,
      requests: 1,
      reason: 'it is local-limit',
      msg: 'requests answered 503: the gateway cannot open more connections',
    },
    busyLine(1),
  ])
  vi.advanceTimersByTime(5_000)
  expect(lines).toMatchObject([{ level: 50, requests: 199 }])
})

test.each<[kind: FailureKind, setting: string | undefined]>([
  ['timeout', 'UPSTREAM_TIMEOUT'],
  ['idle-timeout', 'UPSTREAM_IDLE_TIMEOUT'],
  ['connect-timeout', 'UPSTREAM_CONNECT_TIMEOUT'],
  ['reset', undefined],
])('the line of %s names the setting: %s', (kind, setting) => {
  fail(kind)
  expect(lines).toMatchObject([{ kind, ...(setting !== undefined && { settings: setting }) }])
  if (setting === undefined) expect(lines[0]).not.toHaveProperty('settings')
})
