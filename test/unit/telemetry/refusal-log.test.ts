import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRefusalLog, type RefusedRequest } from '../../../proxy/telemetry/refusal-log.ts'

const refused: RefusedRequest = {
  requestId: 'b1946ac9',
  method: 'POST',
  path: '/login',
  clientAddress: '192.0.2.7',
  status: 429,
  policy: 'login',
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function logTo(lines: Record<string, unknown>[], logAddresses = true) {
  const write = (text: string): number => lines.push(JSON.parse(text) as Record<string, unknown>)
  return createRefusalLog(pino({ base: null, timestamp: false }, { write }), { logAddresses })
}

test('a line names the request, the client and the rule', () => {
  const lines: Record<string, unknown>[] = []
  logTo(lines)(refused)
  expect(lines).toEqual([
    {
      level: 30,
      requestId: 'b1946ac9',
      method: 'POST',
      path: '/login',
      client: '192.0.2.7',
      status: 429,
      policy: 'login',
      msg: 'request refused',
    },
  ])
})

test('addresses can be left out, and long paths are cut', () => {
  const lines: Record<string, unknown>[] = []
  logTo(lines, false)({ ...refused, path: `/${'x'.repeat(5000)}` })
  expect(lines[0]).not.toHaveProperty('client')
  expect(String(lines[0]?.['path'])).toHaveLength(1024)
})

test('100 of a thousand refusals in a second are logged, and a line reports the number of suppressed ones', () => {
  const lines: Record<string, unknown>[] = []
  const tell = logTo(lines)
  for (let index = 0; index < 1000; index++) tell({ ...refused, requestId: String(index) })
  expect(lines.map(({ requestId }) => requestId)).toEqual(
    Array.from({ length: 100 }, (_, index) => `${index}`),
  )
  vi.advanceTimersByTime(999)
  tell(refused)
  expect(lines).toHaveLength(100)
  vi.advanceTimersByTime(1)
  expect(lines.slice(100)).toEqual([{ level: 30, leftOut: 901, msg: 'refusal log lines suppressed' }])
  // The next second begins with the next refused request.
  vi.advanceTimersByTime(5000)
  for (let index = 0; index < 100; index++) tell(refused)
  vi.advanceTimersByTime(5000)
  expect(lines).toHaveLength(201)
})
