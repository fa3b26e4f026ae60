import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createAccessLog, type Access } from '../../../proxy/telemetry/access-log.ts'

const access: Access = {
  requestId: 'b1946ac9',
  method: 'POST',
  path: '/login',
  status: 429,
  isIncomplete: false,
  durationMs: 1.23456,
  route: undefined,
  routedBy: undefined,
  delayedMs: undefined,
  refusedBy: 'login',
  list: undefined,
  deniedBy: undefined,
  rejected: undefined,
  wouldBeRefusedBy: undefined,
  clientAddress: '192.0.2.7',
}

/** The lines written for one request: raw, and parsed. */
function linesFor(
  changed: Partial<Access>,
  logAddresses = true,
): { text: string; line: Record<string, unknown> } {
  const written: string[] = []
  const log = pino({ base: null, timestamp: false }, { write: (text: string) => written.push(text) })
  createAccessLog(log, { logAddresses })({ ...access, ...changed })
  expect(written).toHaveLength(1)
  const text = written.join('')
  return { text, line: JSON.parse(text) as Record<string, unknown> }
}

test('a line has the request, its outcome and the rule that refused it', () => {
  expect(linesFor({}).line).toEqual({
    level: 30,
    requestId: 'b1946ac9',
    method: 'POST',
    path: '/login',
    status: 429,
    durationMs: 1.235,
    refusedBy: 'login',
    client: '192.0.2.7',
    msg: 'request',
  })
})

test('a request that nothing refused has no such field', () => {
  expect(linesFor({ refusedBy: undefined, status: 200 }).line).not.toHaveProperty('refusedBy')
})

test('a request that limits in shadow would have refused names them', () => {
  const { line } = linesFor({ refusedBy: undefined, status: 200, wouldBeRefusedBy: ['search', 'daily'] })
  expect(line).toMatchObject({ status: 200, wouldBeRefusedBy: ['search', 'daily'] })
  expect(line).not.toHaveProperty('refusedBy')
})

test('addresses can be left out of access lines', () => {
  const { text, line } = linesFor({}, false)
  expect(text).not.toContain('192.0.2.7')
  expect(line).not.toHaveProperty('client')
})

test('an access line stays one line and of bounded length, whatever the path', () => {
  const { text, line } = linesFor({ path: `/"},\n{"level":60,"msg":"forged"}\u2028${'a'.repeat(100_000)}` })
  expect(text.trimEnd()).not.toContain('\n')
  expect(text.length).toBeLessThan(1500)
  expect(line['level']).toBe(30)
})
