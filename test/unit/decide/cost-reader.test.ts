import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createCostReader, unitsFrom } from '../../../proxy/decide/cost-reader.ts'
import { runs } from '../../support/random/runs.ts'

const path = ['usage', 'total_tokens']
const json = ['content-type', 'application/json; charset=utf-8']
const events = ['content-type', 'text/event-stream']

function read(fields: readonly string[], ...pieces: readonly (string | Buffer)[]): number | undefined {
  const reader = createCostReader({ kind: 'json', path }, fields)
  for (const piece of pieces) reader?.push(Buffer.from(piece))
  return reader?.units
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

  test('of more than 64 KiB is not read', () => {
    const fill = (length: number): string => `{"text":"${'x'.repeat(length)}","usage":{"total_tokens":5}}`
    expect(read(json, fill(60_000))).toBe(5)
    expect(read(json, fill(70_000))).toBeUndefined()
  })

  test.each([[['content-type', 'text/plain']], [[]], [[...json, 'content-encoding', 'gzip']]])(
    '%j is not read',
    (fields) => expect(read(fields, '{"usage":{"total_tokens":12}}')).toBeUndefined(),
  )
})

describe('server-sent events', () => {
  const event = (units: number | null): string =>
    `data: ${JSON.stringify({ usage: units && { total_tokens: units } })}\n\n`

  test('the last one that says it counts', () =>
    expect(read(events, event(null), event(3), event(9), event(null), 'data: [DONE]\n\n')).toBe(9))

  test('one that has not ended does not', () => expect(read(events, event(3), event(9).trimEnd())).toBe(3))

  test('data over several lines, comments and other fields', () =>
    expect(read(events, ': hello\nevent: usage\nid: 1\ndata: {"usage":\ndata:{"total_tokens":7}}\n\n')).toBe(
      7,
    ))

  test('one of more than 64 KiB is passed over', () => {
    const long = `data: {"text":"${'x'.repeat(70_000)}","usage":{"total_tokens":99}}\n\n`
    expect(read(events, event(3), long)).toBe(3)
    expect(read(events, long, event(4))).toBe(4)
  })

  test('what is not kept of a long line does not end its event', () => {
    const cut = `data: "${'x'.repeat(66_000)}"\ndata: {"usage":{"total_tokens":0}}\n\n`
    expect(read(events, cut)).toBeUndefined()
    expect(read(events, cut, event(4))).toBe(4)
  })

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
  [['x-cost', ''], undefined],
  [['x-cost', '99999999999999999999'], Number.MAX_SAFE_INTEGER],
  [['other', '12'], undefined],
  [[], undefined],
])('a header: %j', (fields, units) => expect(unitsFrom(fields, 'x-cost')).toBe(units))
