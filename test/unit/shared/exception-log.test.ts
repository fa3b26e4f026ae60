import { pino } from 'pino'
import { beforeEach, expect, test, vi } from 'vitest'
import { createExceptionLog } from '../../../shared/exception-log.ts'
import { serializeException } from '../../../shared/log.ts'

const lines: Record<string, unknown>[] = []
const log = pino(
  { base: null, timestamp: false, serializers: { err: serializeException } },
  { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
)

beforeEach(() => {
  lines.length = 0
  vi.useFakeTimers()
  return () => vi.useRealTimers()
})

test('100 of 250 exceptions in a second are logged, and then the number of the others', () => {
  const logException = createExceptionLog(log)
  for (let i = 0; i < 250; i++) logException({ err: new Error('a bug') }, 'exception')
  expect(lines).toHaveLength(100)
  vi.advanceTimersByTime(1_000)
  expect(lines.at(-1)).toMatchObject({ leftOut: 150, msg: 'exception log lines suppressed' })
  logException({ err: new Error('another') }, 'exception')
  expect(lines.at(-1)).toMatchObject({ err: { type: 'Error', message: 'another' } })
})

test('an exception is logged with its code, its cause and its stack', () => {
  const err = Object.assign(new TypeError('failed', { cause: new Error('refused') }), {
    code: 'EX',
    port: 80,
  })
  createExceptionLog(log)({ err }, 'exception')
  const [line] = lines
  expect(line).toMatchObject({ err: { type: 'TypeError', message: 'failed: refused', code: 'EX', port: 80 } })
  expect(JSON.stringify(line)).toContain('caused by: Error: refused')
})

const long = 'x'.repeat(1_000_000)
const members = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`m${i}`, { long }]))

test.each<[string, unknown]>([
  ['has a long message', new Error(long)],
  ['has a long cause', new Error('a', { cause: new Error(long) })],
  ['has a packet', Object.assign(new Error('a'), { rawPacket: Buffer.alloc(1_000_000) })],
  ['has a thousand members', Object.assign(new Error('a'), members)],
  ['has ten errors', new AggregateError(Array.from({ length: 10 }, () => new Error(long)))],
  ['is a text', long],
  ['is an object', members],
  ['is a buffer', Buffer.alloc(1_000_000)],
  ['is nothing', undefined],
])('the line of an exception that %s has less than 100 KB', (_, err) => {
  createExceptionLog(log)({ err }, 'exception')
  expect(JSON.stringify(lines[0]).length).toBeLessThan(100_000)
})
