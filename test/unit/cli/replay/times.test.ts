import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineReader } from '../../../../proxy/cli/replay/logs/formats.ts'

// The same request, as each form of the servers' time and duration settings writes it.

/** An instant in whole milliseconds, from 2001 to 2100. */
const instants = fc.integer({ min: Date.UTC(2001, 0, 1), max: Date.UTC(2100, 0, 1) })
/** Durations of requests from 0.1 ms to 50 s. */
const nanoseconds = fc.integer({ min: 100_000, max: 50_000_000_000 })

const iso = (ms: number): string => new Date(ms).toISOString()
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const commonLog = (ms: number): string => {
  const text = iso(ms)
  return `${text.slice(8, 10)}/${months[Number(text.slice(5, 7)) - 1] ?? ''}/${text.slice(0, 4)}:${text.slice(11, 19)} +0000`
}

/** Values of Caddy's `time_format`: how each writes an instant, and its resolution in milliseconds. */
const caddyTimes: readonly (readonly [string, (ms: number) => string, number])[] = [
  ['unix_seconds_float', (ms) => String(ms / 1e3), 1],
  ['unix_milli_float', (ms) => `${ms}.125`, 1],
  ['unix_nano', (ms) => `${ms}000000`, 1],
  ['iso8601', (ms) => `"${iso(ms).replace('Z', '+0000')}"`, 1],
  ['rfc3339', (ms) => `"${iso(ms).slice(0, 19)}Z"`, 1000],
  ['rfc3339_nano', (ms) => `"${iso(ms).replace('Z', '456789Z')}"`, 1],
  ['common_log', (ms) => `"${commonLog(ms)}"`, 1000],
]

/** Values of Caddy's `duration_format`, each written from nanoseconds. */
const caddyDurations: readonly (readonly [string, (ns: number) => string, number])[] = [
  ['seconds', (ns) => String(ns / 1e9), 0.001],
  ['nanos', (ns) => String(ns), 0.001],
  ['string', (ns) => `"${ns / 1e6}ms"`, 0.001],
]

function caddyLine(ts: string, duration: string): string {
  const request = '{"remote_ip":"192.0.2.7","method":"GET","host":"a","uri":"/","headers":{}}'
  return `{"ts":${ts},"duration":${duration},"status":200,"request":${request}}`
}

/** The end and the duration of the request in a log line of any format. Throws an Error if the line cannot be read. */
function spanOf(read: ReturnType<typeof lineReader>, line: string): { endMs: number; durationMs: number } {
  const found = read(line)
  if (found === 'other' || 'why' in found) throw new Error(`${line}: ${JSON.stringify(found)}`)
  const { timeMs, durationMs = 0 } = found
  return { endMs: timeMs + durationMs, durationMs }
}

describe.each(caddyTimes)('Caddy, time_format %s', (_name, write, exactMs) => {
  test('a time that Caddy wrote is read as the same instant', () => {
    fc.assert(
      fc.property(instants, (ms) => {
        const { endMs } = spanOf(lineReader('auto'), caddyLine(write(ms), '0'))
        expect(Math.abs(endMs - ms)).toBeLessThanOrEqual(exactMs)
      }),
    )
  })
})

describe.each(caddyDurations)('Caddy, duration_format %s', (_name, write, exactMs) => {
  test('a duration that Caddy wrote is read as the same duration', () => {
    fc.assert(
      fc.property(instants, fc.array(nanoseconds, { minLength: 1, maxLength: 10 }), (ms, all) => {
        const read = lineReader('caddy')
        // A first request of more than a millisecond, not of whole seconds.
        read(caddyLine('1e9', write(12_345_678)))
        for (const ns of all) {
          const { durationMs } = spanOf(read, caddyLine(String(ms / 1e3), write(ns)))
          expect(Math.abs(durationMs - ns / 1e6)).toBeLessThanOrEqual(exactMs)
        }
      }),
    )
  })
})

test.each([
  ['"12µs"', 0.012],
  ['"1m2.5s"', 62_500],
  ['"1h0m0.25s"', 3_600_250],
  ['"512ns"', 0.000512],
  ['"soon"', 0],
  ['-5', 0],
  ['1e300', 0],
  ['"1e9s"', 0],
])('Caddy, a duration %s: %d ms', (duration, expected) => {
  expect(spanOf(lineReader('caddy'), caddyLine('1700000000.5', duration)).durationMs).toBeCloseTo(expected, 6)
})

test.each([
  ['milliseconds', 1],
  ['microseconds', 1e3],
  ['nanoseconds', 1e6],
])('nginx, msec in %s', (_unit, perMs) => {
  fc.assert(
    fc.property(instants, (ms) => {
      const digits = `${ms}${'0'.repeat(Math.round(Math.log10(perMs)))}`
      for (const msec of [digits, `"${digits}"`]) {
        const line = `{"msec":${msec},"remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","status":200}`
        expect(Math.abs(spanOf(lineReader('auto'), line).endMs - ms)).toBeLessThanOrEqual(1)
      }
    }),
  )
})

test('nginx, a request_time in microseconds', () => {
  const read = lineReader('nginx-json')
  const line = (taken: number): string =>
    `{"msec":"1700000000.500","request_time":${taken},"remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","status":200}`
  expect(spanOf(read, line(250_000)).durationMs).toBe(250)
  expect(spanOf(read, line(1_250_000)).durationMs).toBe(1250)
})

describe('a time that no request can have', () => {
  const far = fc.oneof(
    fc.double({ min: 1e20, max: Number.MAX_VALUE, noNaN: true }),
    fc.double({ min: -Number.MAX_VALUE, max: -1, noNaN: true }),
    fc.constantFrom(8.64e15 * 1e6 + 1e9, 7.3e9, 1e10),
  )

  test('a time that no request can have is reported, and not passed on', () => {
    fc.assert(
      fc.property(far, (number) => {
        const lines = [
          caddyLine(String(number), '0.5'),
          `{"msec":"${number}","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","status":200}`,
        ]
        for (const line of lines)
          expect(lineReader('auto')(line)).toEqual({ why: 'the time is out of range' })
      }),
    )
  })

  test.each([
    '{"msg":"request","requestId":"a","time":"+275000-01-01T00:00:00.000Z","method":"GET","path":"/","client":"192.0.2.7"}',
    '1.2.3.4 - - [10/Oct/9999:13:55:36 -0700] "GET / HTTP/1.0" 200 1',
    '1.2.3.4 - - [10/Oct/1000:13:55:36 -0700] "GET / HTTP/1.0" 200 1',
  ])('%s', (line) => {
    expect(lineReader('auto')(line)).toEqual({ why: 'the time is out of range' })
  })
})
