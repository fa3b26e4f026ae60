import { parse } from 'node:querystring'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { limits } from '../../proxy/config/rules/limits.ts'
import { headersOf } from '../../proxy/http/message/headers.ts'
import { doAtOnce } from '../../shared/steps.ts'
import { compileConditions } from '../../proxy/limits/conditions/conditions.ts'
import type { Rule } from '../../proxy/policy.ts'
import { noAddressLists } from '../../proxy/request/addresses/lists/address-lists.ts'
import { readTarget } from '../../proxy/request/target/target.ts'
import { asRead } from '../support/http/as-read.ts'
import { runs } from '../support/random/runs.ts'

// A client must gain nothing from a request that backends read differently. `when` applies the rule if the condition holds for any backend;
// `unless` exempts only if it holds for all of them.

type TextTest =
  | 'absent'
  | 'present'
  | { readonly is: string }
  | { readonly prefix: string }
  | { readonly contains: string }
/** The value that a backend reads; undefined if it reads none. */
type Reading = string | undefined
type Reader<Sent> = (sent: Sent) => readonly Reading[]

function holds(test: TextTest, reading: Reading): boolean {
  if (test === 'absent') return reading === undefined
  if (test === 'present') return reading !== undefined
  if (reading === undefined) return false
  if ('is' in test) return reading === test.is
  return 'prefix' in test ? reading.startsWith(test.prefix) : reading.includes(test.contains)
}

type Asked = { readonly lines: readonly (readonly [string, string])[]; readonly path: string }

function appliesWith(fields: object, { lines, path }: Asked): boolean {
  const [rule] = limits.parse([{ name: 'r', match: 'GET /', requests: 1, window: '1m', ...fields }]) as [Rule]
  const conditions = doAtOnce(compileConditions([rule], { files: noAddressLists, wallNow: () => 0 }))
  const target = readTarget('GET', path)
  if (typeof target === 'string') throw new Error(target)
  const rawHeaders = asRead(lines.flat())
  const client = { address: '192.0.2.1', prefix: '192.0.2.1' }
  const source = { client, host: 'a', target, claims: undefined, headers: headersOf(rawHeaders), rawHeaders }
  return (conditions?.applying([rule.policy], source).length ?? 1) === 1
}

function expectSafe(condition: object, test: TextTest, asked: Asked, readings: readonly Reading[]): void {
  // Some backends check whether there is a value, others whether it is not empty.
  const all = readings.flatMap((reading) => (reading === '' ? [undefined, ''] : [reading]))
  if (all.some((reading) => holds(test, reading)))
    expect(appliesWith({ when: condition }, asked), `some backend: ${JSON.stringify(all)}`).toBe(true)
  if (!all.every((reading) => holds(test, reading)))
    expect(appliesWith({ unless: condition }, asked), `not every backend: ${JSON.stringify(all)}`).toBe(true)
}

const value = fc.constantFrom(
  'a',
  'ab',
  'b',
  'A',
  '7',
  '07',
  '',
  '"a"',
  '%61',
  'a%',
  '%20',
  'a%00',
  ' a',
  'b,a',
  'a=b',
  'x]',
  '\\"',
)
const word = fc.constantFrom('a', 'b', 'ab', '7')
const textTest: fc.Arbitrary<TextTest> = fc.oneof(
  fc.constantFrom<TextTest>('absent', 'present'),
  word.map((is) => ({ is })),
  word.map((prefix) => ({ prefix })),
  word.map((contains) => ({ contains })),
)

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
const unquoted = (text: string): string => (/^".*"$/.test(text) ? text.slice(1, -1) : text)
const ends = (all: readonly string[]): readonly Reading[] => [all[0], all.at(-1)]
/** The name as PHP compares it. */
const mangled = (name: string): string => decoded(name).replaceAll(/[ .]/g, '_').replace(/\[.*$/, '')

type IsName = (sent: string) => boolean
const named: readonly IsName[] = [
  (sent) => sent === 'sid',
  (sent) => sent.toLowerCase() === 'sid',
  (sent) => mangled(sent) === 'sid',
]
const valueReaders: readonly ((text: string) => string)[] = [
  (text) => text,
  unquoted,
  decoded,
  (text) => decoded(unquoted(text)),
]

const pairsOf = (text: string, separator: RegExp): (readonly [string, string])[] =>
  text.split(separator).flatMap((piece) => {
    const equals = piece.indexOf('=')
    return equals === -1 ? [] : [[piece.slice(0, equals).trim(), piece.slice(equals + 1).trim()] as const]
  })

const cookieReaders: readonly Reader<string>[] = named.flatMap((isName) =>
  valueReaders.flatMap((read) =>
    [/;/, /[;,]/].map((separator): Reader<string> => (sent) => {
      const found = pairsOf(sent, separator).filter(([name]) => isName(name))
      return ends(found.map(([, text]) => read(text)))
    }),
  ),
)

const name = fc.constantFrom('sid', 'SID', '%73id', 'sid[]', 'sidx', 'x', 's.id')

test('a cookie: when applies to what any backend reads so, and unless exempts what all read so', () => {
  const pair = fc.oneof(
    { weight: 5, arbitrary: fc.tuple(name, value).map(([each, text]) => `${each}=${text}`) },
    fc.constantFrom('sid', 'a b', '"'),
  )
  const header = fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join('; '))
  fc.assert(
    fc.property(header, textTest, (cookies, condition) => {
      const lines = cookies === '' ? [] : [['Cookie', cookies] as const]
      const readings = cookieReaders.flatMap((read) => read(cookies))
      expectSafe({ cookie: { sid: condition } }, condition, { lines, path: '/' }, readings)
    }),
    { numRuns: runs(10_000) },
  )
})

/** Go drops a parameter with a malformed escape, and Rack drops all parameters. */
const hasMalformedEscape = (text: string): boolean => /%(?![\da-f]{2})/i.test(text)

const queryReaders: readonly Reader<string>[] = [
  (sent) => ends(new URLSearchParams(sent).getAll('sid')),
  (sent) => {
    const sound = sent.split('&').filter((piece) => !hasMalformedEscape(piece))
    return ends(new URLSearchParams(sound.join('&')).getAll('sid'))
  },
  (sent) => ends(hasMalformedEscape(sent) ? [] : new URLSearchParams(sent).getAll('sid')),
  // Laravel
  (sent) => ends(new URLSearchParams(sent).getAll('sid').map((text) => text.trim())),
  (sent) => ends([parse(sent)['sid'] ?? []].flat()),
  ...named.flatMap((isName) =>
    [/&/, /[&;]/].map((separator): Reader<string> => (sent) => {
      const found = pairsOf(sent, separator).filter(([each]) => isName(each))
      return ends(found.map(([, text]) => decoded(text.replaceAll('+', ' '))))
    }),
  ),
]

test('a query parameter: when applies to what any backend reads so, and unless exempts what all read so', () => {
  const pair = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.tuple(name, fc.oneof(value, fc.constant('%6b'))).map(([each, text]) => `${each}=${text}`),
    },
    fc.constantFrom('sid', 'x', '=sid=a'),
  )
  const query = fc
    .tuple(fc.array(pair, { maxLength: 4 }), fc.constantFrom('&', '&', ';'))
    .map(([pairs, separator]) => pairs.join(separator).replaceAll(/[ "\\]/g, encodeURIComponent))
  fc.assert(
    fc.property(query, textTest, (sent, condition) => {
      const path = sent === '' ? '/' : `/?${sent}`
      if (typeof readTarget('GET', path) === 'string') return
      expectSafe(
        { query: { sid: condition } },
        condition,
        { lines: [], path },
        queryReaders.flatMap((read) => read(sent)),
      )
    }),
    { numRuns: runs(10_000) },
  )
})

test('a header: when applies to what any backend reads so, and unless exempts what all read so', () => {
  const headerValue = fc.constantFrom(
    'a',
    'ab',
    'b',
    '7',
    '',
    '"a"',
    'b, a',
    'a;q=1',
    ' a ',
    ',',
    'xa',
    'b; a',
    'a; b',
    'a; b; q=1',
  )
  fc.assert(
    fc.property(fc.array(headerValue, { maxLength: 3 }), textTest, (values, condition) => {
      const lines = values.map((each) => ['X-Key', each.trim()] as const)
      // The gateway joins several lines into one.
      const whole = values.length === 0 ? undefined : values.map((each) => each.trim()).join(', ')
      const pieces = whole?.split(',').map((piece) => piece.trim()) ?? []
      const readings = [
        whole,
        pieces[0],
        pieces.at(-1),
        whole && unquoted(whole),
        ...pieces.slice(0, 1).map((piece) => piece.split(';')[0]?.trim()),
        // The last value, for readers that split at semicolons; `q=1` is a parameter.
        ...ends(
          (whole ?? '')
            .split(';')
            .map((piece) => piece.trim())
            .filter((piece) => piece !== '' && !piece.includes('=')),
        ),
      ]
      expectSafe({ header: { 'x-key': condition } }, condition, { lines, path: '/' }, readings)
    }),
    { numRuns: runs(10_000) },
  )
})
