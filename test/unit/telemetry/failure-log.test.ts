import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createFailureLog } from '../../../proxy/telemetry/failure-log.ts'
import { UpstreamFailure, type FailureKind } from '../../../proxy/http/upstream/failure.ts'

let lines: unknown[]
let failuresOf: ReturnType<typeof createFailureLog>

beforeEach(() => {
  vi.useFakeTimers()
  lines = []
  const write = (text: string): number => lines.push(JSON.parse(text))
  failuresOf = createFailureLog(pino({ base: null, timestamp: false }, { write }))
})
afterEach(() => {
  vi.useRealTimers()
})

function fail(kind: FailureKind, requests = 1, upstream = 'app'): void {
  for (let sent = 1; sent <= requests; sent++)
    failuresOf(upstream)(new UpstreamFailure(kind, `it is ${kind}`), `id ${sent}`)
}

const busyLine = (requests: number, requestId: string) => ({
  level: 40,
  upstream: 'app',
  kind: 'busy',
  requests,
  requestId,
  reason: 'it is busy',
  settings: 'UPSTREAM_CONNECTIONS, UPSTREAM_QUEUE, UPSTREAM_CONNECT_TIMEOUT',
  msg: 'requests answered 503: no connection to the backend is free',
})
const resetLine = (requests: number, requestId: string, upstream = 'app') => ({
  level: 40,
  upstream,
  kind: 'reset',
  requests,
  requestId,
  reason: 'it is reset',
  msg: 'requests to the backend failed',
})

test('a busy backend is logged at once, then every five seconds with the number of requests since', () => {
  fail('busy')
  expect(lines.splice(0)).toEqual([busyLine(1, 'id 1')])
  fail('busy', 7)
  vi.advanceTimersByTime(4_999)
  fail('busy', 2)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(1)
  expect(lines.splice(0)).toEqual([busyLine(9, 'id 2')])
  fail('busy', 3)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(5_000)
  expect(lines.splice(0)).toEqual([busyLine(3, 'id 3')])
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual([])
  fail('busy')
  expect(lines).toEqual([busyLine(1, 'id 1')])
})

test('one of a thousand failures of a kind is logged at once, and the number of the others a second later', () => {
  fail('reset', 1000)
  expect(lines.splice(0)).toEqual([resetLine(1, 'id 1')])
  vi.advanceTimersByTime(999)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(1)
  expect(lines.splice(0)).toEqual([resetLine(999, 'id 1000')])
  vi.advanceTimersByTime(60_000)
  fail('reset')
  expect(lines).toEqual([resetLine(1, 'id 1')])
})

test('failures of another kind, or of another backend, do not wait for a line', () => {
  fail('reset', 2)
  fail('timeout')
  fail('reset', 3, 'api')
  expect(lines.splice(0)).toMatchObject([
    resetLine(1, 'id 1'),
    { kind: 'timeout', upstream: 'app', requests: 1 },
    resetLine(1, 'id 1', 'api'),
  ])
  vi.advanceTimersByTime(1000)
  expect(lines).toEqual([resetLine(1, 'id 2'), resetLine(2, 'id 3', 'api')])
})

test('each request that a shutdown aborts has a line of its own', () => {
  fail('aborted', 2)
  expect(lines).toEqual(
    ['id 1', 'id 2'].map((requestId) => ({
      level: 40,
      requestId,
      reason: 'it is aborted',
      msg: 'request aborted by the gateway',
    })),
  )
})

test('a limit of this machine is logged as seldom as a busy backend, and as an error', () => {
  fail('local-limit', 200)
  fail('busy')
  const line = (requests: number, requestId: string) => ({
    level: 50,
    upstream: 'app',
    kind: 'local-limit',
    requests,
    requestId,
    reason: 'it is local-limit',
    msg: 'requests answered 503: the gateway cannot open more connections',
  })
  expect(lines.splice(0)).toEqual([line(1, 'id 1'), busyLine(1, 'id 1')])
  vi.advanceTimersByTime(4_999)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(1)
  expect(lines).toEqual([line(199, 'id 200')])
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
