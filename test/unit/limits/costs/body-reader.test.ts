import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createBodyReader, unitsFrom, type BodyReader } from '../../../../proxy/limits/costs/body-reader.ts'
import { runs } from '../../../support/random/runs.ts'

const path = 'usage.total_tokens'
const json = ['content-type', 'application/json; charset=utf-8']
const events = ['content-type', 'text/event-stream']

function readAll(fields: readonly string[], ...pieces: readonly (string | Buffer)[]): BodyReader {
  const reader = createBodyReader([path], fields, true)
  for (const piece of pieces) reader.push(Buffer.from(piece))
  return reader
}

/** The value, if the body was read as a whole. */
function read(fields: readonly string[], ...pieces: readonly (string | Buffer)[]): number | undefined {
  const reader = readAll(fields, ...pieces)
  return reader.isWhole ? reader.valueAt(path) : undefined
}

describe('a JSON document', () => {
  test.each<[string, number | undefined]>([
    ['{"usage":{"total_tokens":12}}', 12],
    ['{"text":"grüß dich","usage":{"total_tokens":12.2}}', 13],
    ['{"usage":{"total_tokens":0}}', 0],
    ['{"usage":{"total_tokens":"12"}}', undefined],
    ['{"usage":{"total_tokens":-1}}', undefined],
    ['{"usage":{"total_tokens":1e300}}', Number.MAX_SAFE_INTEGER],
    ['{"usage":{"total_tokens":1e999}}', Number.MAX_SAFE_INTEGER],
    ['{"usage":{"total_tokens":null}}', undefined],
    ['{"usage":[]}', undefined],
    ['{"usage":null}', undefined],
    ['{"usage":{"total_tokens":12}', undefined],
    ['not JSON', undefined],
    ['', undefined],
    ['{"__proto__":{"usage":{"total_tokens":1}}}', undefined],
  ])('%s', (text, units) => expect(read(json, text)).toBe(units))

  test('a JSON document of more than 64 KiB is read', () => {
    const fill = (length: number): string => `{"text":"${'x'.repeat(length)}","usage":{"total_tokens":5}}`
    for (const length of [60_000, 70_000, 5_000_000]) expect(read(json, fill(length))).toBe(5)
  })

  test('a JSON document may contain invalid JSON off the path, such as the NaN of Python', () =>
    expect(read(json, '{"logprobs":[NaN,-Infinity],"usage":{"total_tokens":5}}')).toBe(5))

  test('a JSON document may have a byte order mark before it', () =>
    expect(read(json, '\ufeff{"usage":{"total_tokens":5}}')).toBe(5))

  test('a number with thousands of digits is not read', () =>
    expect(read(json, `{"usage":{"total_tokens":${'1'.repeat(5000)}}}`)).toBeUndefined())

  test.each([[['content-type', 'text/plain']], [[]], [[...json, 'content-encoding', 'gzip']]])(
    '%j is not read',
    (fields) => expect(read(fields, '{"usage":{"total_tokens":12}}')).toBeUndefined(),
  )
})

describe('server-sent events', () => {
  const event = (units: number | null): string =>
    `data: ${JSON.stringify({ usage: units && { total_tokens: units } })}\n\n`

  test('the last event that states a cost counts', () =>
    expect(read(events, event(null), event(3), event(9), event(null), 'data: [DONE]\n\n')).toBe(9))

  test('an event that has not ended does not count', () =>
    expect(read(events, event(3), event(9).trimEnd())).toBe(3))

  test('an event may have several data lines, comments and other fields', () =>
    expect(read(events, ': hello\nevent: usage\nid: 1\ndata: {"usage":\ndata:{"total_tokens":7}}\n\n')).toBe(
      7,
    ))

  test('an event of more than 64 KiB is read', () => {
    const long = `data: {"text":"${'x'.repeat(70_000)}","usage":{"total_tokens":99}}\n\n`
    expect(read(events, event(3), long)).toBe(99)
    expect(read(events, long, event(4))).toBe(4)
  })

  test('an event that is not JSON is ignored', () => {
    const faulty = `data: "${'x'.repeat(66_000)}"\ndata: {"usage":{"total_tokens":0}}\n\n`
    expect(read(events, faulty)).toBeUndefined()
    expect(read(events, event(4), faulty)).toBe(4)
  })

  test('a byte order mark may stand before the first line', () =>
    expect(read(events, '\ufeff', event(3))).toBe(3))

  test('the pieces in which they arrive, and how their lines end, change nothing', () => {
    const stream = fc.array(fc.oneof(fc.nat(1000), fc.constant(null)), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(stream, fc.constantFrom('\n', '\r\n', '\r'), fc.array(fc.nat(300)), (costs, end, cuts) => {
        const text = costs
          .map((units) => `data: {"usage":${end}data: {"total_tokens":${units}}}${end}${end}`)
          .join('')
        const places = [
          0,
          ...cuts.filter((place) => place < text.length).toSorted((a, b) => a - b),
          text.length,
        ]
        const pieces = places.slice(1).map((place, index) => text.slice(places[index], place))
        expect(read(events, ...pieces)).toBe(costs.findLast((units) => units !== null))
      }),
      { numRuns: runs(500) },
    )
  })
})

test.each<[readonly string[], number | undefined]>([
  [['x-cost', '12'], 12],
  [['x-cost', ' 12 '], 12],
  [['x-cost', '0'], 0],
  [['x-cost', '-1'], undefined],
  [['x-cost', '1.5'], undefined],
  [['x-cost', '12, 13'], undefined],
  [['x-cost', '1', 'x-cost', '12', 'x-cost', '3'], 12],
  [['x-cost', 'unknown', 'x-cost', '12'], 12],
  [['x-cost', ''], undefined],
  [['x-cost', '99999999999999999999'], Number.MAX_SAFE_INTEGER],
  [['other', '12'], undefined],
  [[], undefined],
])('a header: %j', (fields, units) => expect(unitsFrom(fields, 'x-cost')).toBe(units))

describe('the estimate of tokens', () => {
  const chunk = (content: string, more: object = {}): string => {
    const choices = [{ index: 0, delta: { content }, finish_reason: null }]
    return `data: ${JSON.stringify({ id: 'chatcmpl-AbCdEf', object: 'chat.completion.chunk', choices, ...more })}\n\n`
  }
  /** Words of one token and 4 bytes each. */
  const words = (count: number, more: (at: number) => object = () => ({})): string[] =>
    Array.from({ length: count }, (_, at) => chunk(` ${(at % 900) + 100}`, more(at)))

  test('the estimate for events with one token each is near their number', () => {
    const { tokens } = readAll(events, chunk(''), ...words(1000), 'data: [DONE]\n\n')
    expect(tokens).toBeGreaterThanOrEqual(1000)
    expect(tokens).toBeLessThan(1600)
  })

  test('the estimate of tokens ignores padding in events', () => {
    const { tokens } = readAll(events, ...words(1000, (at) => ({ obfuscation: 'xYz'.repeat((at * 7) % 5) })))
    expect(tokens).toBeLessThan(1600)
  })

  test.each([1, 10, 100])('the estimate for events with %i tokens each is not below that', (size) => {
    const pieces = Array.from({ length: 50 }, (_, at) => chunk(` ${(at % 9) + 1}00`.repeat(size)))
    const { tokens } = readAll(events, chunk(''), ...pieces)
    expect(tokens).toBeGreaterThanOrEqual(50 * size)
    expect(tokens).toBeLessThan(50 * size * 2 + 50)
  })

  test('the estimate of tokens counts the text of a stream of identical events', () => {
    const { tokens } = readAll(events, chunk(''), ...Array.from({ length: 50 }, () => chunk('x'.repeat(300))))
    expect(tokens).toBeGreaterThanOrEqual(5000)
  })

  test('the estimate for an event that stands alone or has not ended is by its length', () => {
    for (const text of [chunk('x'.repeat(3000)), chunk('x'.repeat(3000)).trimEnd()])
      expect(readAll(events, text).tokens).toBeGreaterThan(800)
  })

  test('the estimate for a document is by its length, for a compressed one a token for each byte', () => {
    expect(readAll(json, 'x'.repeat(3000)).tokens).toBe(1000)
    expect(readAll(['content-type', 'text/plain'], 'x'.repeat(3000)).tokens).toBe(1000)
    expect(readAll([...json, 'content-encoding', 'gzip'], 'x'.repeat(3000)).tokens).toBe(3000)
  })
})
