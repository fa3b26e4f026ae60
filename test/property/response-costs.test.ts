import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createBodyReader } from '../../proxy/limits/costs/body-reader.ts'
import { anyCharacters } from '../support/random/any-characters.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The attack: a response whose cost is missed because of its length, its pieces, or the text around the number. The number read is compared
 * with `JSON.parse`, which sees the whole text at once.
 */

const paths = ['usage.total_tokens', 'usage.a', 'response.usage.total_tokens', 'n', 'list.1.n', 'é"\\.n']
const names = [
  'usage',
  'total_tokens',
  'response',
  'n',
  'a',
  'list',
  'é"\\',
  '',
  '__proto__',
  '0',
  '1',
  'usagex',
]

/** The number that `JSON.parse` finds at a path. */
function judge(value: unknown, path: string): number | undefined {
  let found = value
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return typeof found === 'number' && found >= 0
    ? Math.min(Math.ceil(found), Number.MAX_SAFE_INTEGER) + 0
    : undefined
}

const scalar = fc.oneof(
  fc.nat(1000).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom(
    'null',
    'true',
    '-1',
    '-0',
    '1e2',
    '1E+2',
    '0.5',
    '1e999',
    '1e-400',
    '12345678901234567890',
  ),
  anyCharacters(20).map((text) => JSON.stringify(text)),
  fc
    .tuple(fc.constantFrom('x', '\\', '"', '{"n":1}', 'é', '\u{1f600}', '],'), fc.nat(30_000))
    .map(([unit, times]) => JSON.stringify(unit.repeat(times / 10))),
)

/** A name with some of its letters escaped. */
const name = fc
  .tuple(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...names) }, fc.string()), fc.nat(99))
  .map(([text, seed]) =>
    seed % 3 > 0
      ? JSON.stringify(text)
      : `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`,
  )
/** The value with the number, without its outermost name. */
const usual = fc.constantFrom(
  '{"total_tokens":7}',
  '{"usage":{"total_tokens":8}}',
  '[1,{"n":9}]',
  '{"n":4,"a":5}',
)
const blank = fc.constantFrom('', '', '', ' ', '\n\t', '\r')

/** Generates texts instead of values, so that names repeat and blanks come between tokens. */
const { value } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 5 }, scalar, usual, tie('object'), tie('object'), tie('array')),
  object: fc
    .tuple(fc.array(fc.tuple(name, blank, tie('value'), blank), { maxLength: 5 }), blank)
    .map(
      ([members, end]) =>
        `{${members.map(([key, before, member, after]) => `${before}${key}${after}:${before}${member}${after}`).join(',')}${end}}`,
    ),
  array: fc
    .tuple(fc.array(tie('value'), { maxLength: 5 }), blank)
    .map(([items, end]) => `[${items.join(`${end},`)}${end}]`),
}))
/** The text before the number makes the document as long as it gets. */
const document = fc
  .tuple(fc.array(fc.tuple(name, value), { maxLength: 6 }), fc.boolean())
  .map(([members, isObject]) =>
    isObject
      ? `{${members.map(([key, member]) => `${key}:${member}`).join(',')}}`
      : (members[0]?.[1] ?? '[]'),
  )
const cuts = fc.array(fc.nat(), { maxLength: 40 })

/** @param bytes split at any byte, even within a character */
function split(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

function read(type: string, pieces: readonly Buffer[]): (number | undefined)[] {
  const reader = createBodyReader(paths, ['content-type', type], true)
  for (const piece of pieces) reader.push(piece)
  return paths.map((path) => reader.valueAt(path))
}

function singles(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
}

describe('the cost read from a response equals that of JSON.parse', () => {
  test('the cost read from a document equals that of JSON.parse', () => {
    let found = 0
    fc.assert(
      fc.property(document, cuts, (text, places) => {
        const parsed: unknown = JSON.parse(text)
        const said = paths.map((path) => judge(parsed, path))
        if (said.some((units) => units !== undefined)) found += 1
        const bytes = Buffer.from(text)
        expect(read('application/json', split(bytes, places))).toEqual(said)
        if (bytes.length < 2000) expect(read('application/json', singles(bytes))).toEqual(said)
        const reader = createBodyReader(paths, ['content-type', 'application/json'], true)
        reader.push(bytes)
        expect(reader.isWhole).toBe(typeof parsed === 'object' && parsed !== null)
        if (typeof parsed !== 'object' || parsed === null) return
        // A text that is cut anywhere is incomplete.
        const cut = createBodyReader(paths, ['content-type', 'application/json'], true)
        cut.push(bytes.subarray(0, (places[0] ?? 0) % bytes.length))
        expect(cut.isWhole && (places[0] ?? 0) % bytes.length < text.trimEnd().length).toBe(false)
      }),
      { numRuns: runs(5000) },
    )
    expect(found).toBeGreaterThan(runs(5000) / 20)
  })

  test('the cost read from events is that of the last event that has one', () => {
    const line = fc.constantFrom('\n', '\r\n', '\r')
    const other = fc.constantFrom(
      ': n',
      'event: usage',
      'id: {"n":1}',
      'dat: {"n":1}',
      'datax: {"n":1}',
      'data',
    )
    const event = fc.record({
      text: fc.oneof(document, fc.constantFrom('[DONE]', '{"n":', 'x')),
      before: other,
      space: blank,
    })
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 6 }), line, cuts, (drawn, end, places) => {
        const latest: (number | undefined)[] = paths.map(() => undefined)
        const stream = drawn
          .map(({ text, before, space }) => {
            // Breaks a value into lines wherever that is possible.
            const data = text.split(/[\r\n]+/)
            const parsed = tryParse(data.join('\n'))
            paths.forEach((path, at) => (latest[at] = judge(parsed, path) ?? latest[at]))
            return [before, ...data.map((one) => `data:${space === ' ' ? ' ' : ''}${one}`), '', ''].join(end)
          })
          .join('')
        const bytes = Buffer.from(stream)
        expect(read('text/event-stream', split(bytes, places))).toEqual(latest)
        if (bytes.length < 2000) expect(read('text/event-stream', singles(bytes))).toEqual(latest)
      }),
      { numRuns: runs(3000) },
    )
  })
})

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
