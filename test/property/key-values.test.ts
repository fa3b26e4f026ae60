import { parse as parseQuery } from 'node:querystring'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cookieValues } from '../../proxy/request/values/cookie-values.ts'
import { valuesOf } from '../../proxy/request/values/decoded-values.ts'
import { queryValues } from '../../proxy/request/values/query-values.ts'
import { leastTimeSync, SlowInputs, threadCpuUs } from '../support/load/least-time.ts'
import { runs } from '../support/random/runs.ts'

// The attack: a client sends one value in ever new spellings. The backend reads each as the same value, and the gateway as a new client.
// Every value that a backend reads must be among the counted ones.

type Reader = (sent: string) => readonly (string | undefined)[]

const many = { numRuns: runs(3000) }

function decoded(text: string): string {
  return Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()
}

function formDecoded(text: string): string {
  return decoded(text.replaceAll('+', ' '))
}

/** Separates names and values, without decoding. */
function pairsOf(text: string, separator: RegExp): [name: string, value: string][] {
  return text.split(separator).flatMap((pair): [string, string][] => {
    const equals = pair.indexOf('=')
    return equals === -1 ? [] : [[pair.slice(0, equals), pair.slice(equals + 1)]]
  })
}

function firstAndLast(values: readonly string[]): (string | undefined)[] {
  return [values[0], values.at(-1)]
}

const queryReaders: Record<string, Reader> = {
  'URLSearchParams (WHATWG)': (query) => firstAndLast(new URLSearchParams(query).getAll('user')),
  'node:querystring': (query) => firstAndLast([parseQuery(query)['user'] ?? []].flat()),
  'without + as a space': (query) =>
    firstAndLast(
      pairsOf(query, /&/).flatMap(([name, value]) => (decoded(name) === 'user' ? [decoded(value)] : [])),
    ),
  'with ; as a separator': (query) =>
    firstAndLast(
      pairsOf(query, /[&;]/).flatMap(([name, value]) =>
        formDecoded(name) === 'user' ? [formDecoded(value)] : [],
      ),
    ),
  'ASP.NET, whose names have no case': (query) =>
    firstAndLast(
      [...new URLSearchParams(query)].flatMap(([name, value]) =>
        name.toLowerCase() === 'user' ? [value] : [],
      ),
    ),
  'PHP, which takes the last, and members of it': (query) =>
    [...new URLSearchParams(query)].flatMap(([name, value]) =>
      /^ *user(\[.*)?$/.test(name.replace(/\0[^]*/, '')) ? [value] : [],
    ),
}

/** Rack 2 (Ruby) skips brackets before a name, and ends the name at the next bracket. */
function rackName(name: string): string {
  return /^[[\]]*([^[\]]+)/.exec(name)?.[1] ?? ''
}

const trims: Readonly<Record<string, RegExp>> = {
  "Java's trim": /^[\0-\x20]+|[\0-\x20]+$/g,
  "Java's trim, after C has ended the text at a NUL": /^[\0-\x20]+|[\x01-\x20]*\0[^]*$|[\x01-\x20]+$/g,
  "PHP's trim": /^[ \t\n\r\0\v]+|[ \t\n\r\0\v]+$/g,
  "PHP's mb_trim": /^[\s\0\x85\u180e]+|[\s\0\x85\u180e]+$/g,
  "Python's strip": /^[\t-\r\x1c-\x20\x85\p{Z}]+|[\t-\r\x1c-\x20\x85\p{Z}]+$/gu,
  "Go's TrimSpace": /^\p{White_Space}+|\p{White_Space}+$/gu,
}

test.each(Object.entries(trims))('a value that a backend trims counts as one: %s', (_, around) => {
  const blanks = fc.array(
    fc.constantFrom(...'\0\x01\t\v\x1c\x1f \x85\xa0\u1680\u180e\u2003\u3000'.split('')),
    { maxLength: 4 },
  )
  fc.assert(
    fc.property(blanks, blanks, (before, after) => {
      const value = [...before, 'abc', ...after].join('')
      fc.pre(value.replace(around, '') === 'abc')
      const sent = encodeURIComponent(value)
      expect(queryValues(`/?user=${sent}`, 'user', 8)).toEqual(['abc'])
      expect(cookieValues(`sid=${sent}`, 'sid', 8)).toEqual(['abc'])
    }),
    many,
  )
})

Object.assign(queryReaders, {
  'Rack 2': (query) =>
    firstAndLast(
      pairsOf(query, /[&;] */).flatMap(([name, value]) =>
        rackName(formDecoded(name)) === 'user' ? [formDecoded(value)] : [],
      ),
    ),
  'qs, which drops brackets around a name': (query) =>
    query.split('&').flatMap((pair) => {
      const bracket = pair.indexOf(']=')
      const equals = bracket === -1 ? pair.indexOf('=') : bracket + 1
      const name = formDecoded(pair.slice(0, Math.max(0, equals)))
      return /^(?:user|\[user\])(?:\[|$)/.test(name) ? [formDecoded(pair.slice(equals + 1))] : []
    }),
  'h3, which skips equals signs before a name': (query) =>
    query.split('&').flatMap((pair) => {
      const [, name = '', value = ''] = /([^=]+)=?(.*)/.exec(pair) ?? []
      return formDecoded(name) === 'user' ? [formDecoded(value)] : []
    }),
} satisfies Record<string, Reader>)

const octal = /\\([0-3][0-7]{2})|\\([^])/g

function unquoted(value: string): string {
  if (!/^".*"$/s.test(value) || value.length < 2) return value
  return value
    .slice(1, -1)
    .replace(octal, (_, number: string | undefined, other: string | undefined) =>
      number === undefined ? (other ?? '') : String.fromCharCode(Number.parseInt(number, 8)),
    )
}

function withoutEnds(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1) : value
}

const cookieReaders: Record<string, Reader> = {
  'cookie of Express, the first': (header) => [
    pairsOf(header, /;/)
      .filter(([name]) => name.trim() === 'user')
      .map(([, value]) => decoded(value.trim().replace(/^"(.*)"$/s, '$1')))[0],
  ],
  'cookie before 0.7, which drops the last character after a quote': (header) => [
    pairsOf(header, /;/)
      .filter(([name]) => name.trim() === 'user')
      .map(([, value]) => decoded(withoutEnds(value.trim())))[0],
  ],
  'cookies of Koa, which does so without trimming': (header) => [
    withoutEnds(/(?:^|;) *user=([^;]*)/.exec(header)?.[1] ?? ''),
  ],
  'Django, the last': (header) => [
    pairsOf(header, /;/)
      .filter(([name]) => name.trim() === 'user')
      .map(([, value]) => unquoted(value.trim()))
      .at(-1),
  ],
  'PHP, the first': (header) => [
    pairsOf(header, /;/)
      .filter(([name]) => name.trimStart() === 'user')
      .map(([, value]) => formDecoded(value))[0],
  ],
  'RFC 2109, with commas': (header) => [
    pairsOf(header, /[;,]/)
      .filter(([name]) => name.trim() === 'user')
      .map(([, value]) => unquoted(value.trim()))[0],
  ],
  'http.cookies, which ends at blanks and reads quotes first': (header) =>
    [...header.matchAll(/(?:^|[;\s])\s*user\s*=\s*("(?:[^\\"]|\\.)*"|[^;,\s"]*)(?=\s|;|$)/gs)].map(
      ([, value = '']) => unquoted(value),
    ),
}

const inWebOb = /[\w~!@#$%^&*()+=\-`.?|:/{}<>']/.source
const webObCookie = new RegExp(
  `(${inWebOb}+?)\\s*=\\s*("(?:\\\\"|.)*?"|(?:${inWebOb}|\\\\(?:[0-3][0-7]{2}|.))*)`,
  'gs',
)

Object.assign(cookieReaders, {
  'WebOb, to which names and values end at what they should not have': (header) =>
    [...header.matchAll(webObCookie)].flatMap(([, name, value = '']) =>
      name === 'user' ? [/^".*"$/s.test(value) ? unquoted(value) : unquoted(`"${value}"`)] : [],
    ),
  'CGI.pm, the first of the values': (header) =>
    pairsOf(header, /[;,] ?/).flatMap(([name, value]) =>
      decoded(name.trim()) === 'user' ? [decoded(value.trim().split(/[&;]/)[0] ?? '')] : [],
    ),
} satisfies Record<string, Reader>)

/** A truncated value identifies a client only if it contains a letter or digit. */
const namesNobody = /^[^0-9A-Za-z]*$/

const piece = fc.constantFrom(
  ...['user=', 'user=', '&user=', '&user=', ';user=', ';user=', '; user=', ', user=', '="', 'a', 'b'],
  ...[
    'user',
    'USER',
    '%75ser',
    'us%65r',
    'user[]',
    'user[x]',
    'user%5B%5D',
    '[user]',
    ']user',
    '[[user]]',
    '[user][]=',
    'user]=',
    '[',
    ']',
    '&',
    '+user',
    'user%00x',
    'usex',
    'u',
  ],
  ...[
    '=',
    '=',
    '=',
    '&',
    '&',
    ';',
    '; ',
    ', ',
    ' ',
    '"',
    '"',
    '\\"',
    '\\101',
    '\\\\',
    '%22',
    '%3D',
    '%26',
    '%3B',
  ],
  ...['a', 'A', 'b', '%41', '%61', '+', '%2B', '%20', '%25', '%2541', '%', '%E9', '%C3%A9', '%FF', '?', '#'],
)
const sent = fc.array(piece, { minLength: 1, maxLength: 14 }).map((pieces) => pieces.join(''))

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function expectCounted(counted: readonly string[], value: string | undefined, isQuoted: boolean): void {
  for (const client of valuesOf(bytesOf(value ?? ''), { isQuoted, isNumber: false }))
    if (client !== '' && !(isQuoted && namesNobody.test(client)))
      expect(counted, JSON.stringify(value)).toContain(client)
}

test.each(Object.entries(queryReaders))('a query as read by %s', (_, read) => {
  fc.assert(
    fc.property(sent, (query) => {
      const counted = queryValues(`/x?${query}`, 'user', 100)
      for (const value of read(query)) {
        expectCounted(counted, value, false)
      }
    }),
    many,
  )
})

test.each(Object.entries(cookieReaders))('cookies as read by %s', (_, read) => {
  fc.assert(
    fc.property(sent, (header) => {
      const counted = cookieValues(header, 'user', 100)
      for (const value of read(header)) {
        expectCounted(counted, value, true)
      }
    }),
    many,
  )
})

/** Does what Python's `strip` does, for the characters that the gateway forwards. */
const stripped = (text: string): string => text.replace(/^[\t \x85\xa0]+/, '').replace(/[\t \x85\xa0]+$/, '')

const rawCookieReaders: Record<string, Reader> = {
  'Starlette, which strips Latin-1 (the last)': (header) => [
    pairsOf(header, /;/)
      .filter(([name]) => stripped(name) === 'user')
      .map(([, value]) => unquoted(stripped(value)))
      .at(-1),
  ],
  'one that decodes UTF-8': (header) => [
    pairsOf(header, /;/)
      .filter(([name]) => name.trim() === 'user')
      .map(([, value]) => value.replace(/^[\t ]+/, '').replace(/[\t ]+$/, ''))
      // No UTF-8 text begins with such a byte.
      .filter((value) => !/^[\x80-\xbf]/.test(value))[0],
  ],
}
const rawPiece = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('\x85', '\xa0', ' ', '\t', '\xc3', '\xc3\x85', 'x') },
  { weight: 3, arbitrary: fc.constantFrom('user', 'user', '=', '=', ';', ';', ',', '"') },
  piece,
)
const rawCookies = fc.array(rawPiece, { maxLength: 14 }).map((pieces) => pieces.join(''))
const blanks = fc.string({ unit: fc.constantFrom('\x85', '\xa0', ' ', '\t'), maxLength: 3 })
const paddedCookie = fc
  .tuple(blanks, blanks, blanks, fc.constantFrom('abc', 'a b', 'a,b', 'n\xc3\x85', '"a"'), blanks)
  .map(([before, after, between, value, last]) => `${before}user${after}=${between}${value}${last}`)

test.each(Object.entries(rawCookieReaders))('cookies with bytes beyond ASCII as read by %s', (_, read) => {
  const headers = fc.oneof(
    rawCookies,
    paddedCookie,
    fc.tuple(paddedCookie, rawCookies).map((all) => all.join(';')),
  )
  fc.assert(
    fc.property(headers, (header) => {
      const counted = cookieValues(header, 'user', 100)
      for (const value of read(header))
        for (const client of valuesOf(value ?? '', { isQuoted: true, isNumber: false }))
          if (client !== '' && !namesNobody.test(client))
            expect(counted, JSON.stringify(header)).toContain(client)
    }),
    many,
  )
})

test('U+0085 around the name and the value of a cookie makes no other client', () => {
  for (const header of ['user\x85=abc', 'user=\x85abc', '\x85user=\x85 \x85 abc', 'a=1;\x85 user=abc; b=2'])
    expect(cookieValues(header, 'user', 8)).toEqual(['abc'])
  expect(cookieValues('user=abc\x85', 'user', 8)).toContain('abc')
})

test('clients whose quoted cookies begin with the same word have no value in common', () => {
  const rest = fc.string({ unit: fc.constantFrom('a', 'b', '7', '.', ' '), minLength: 1, maxLength: 12 })
  const around = fc.constantFrom('', 'a=1; ', 'x ')
  fc.assert(
    fc.property(around, rest, rest, (before, one, other) => {
      fc.pre(one.trim() !== other.trim())
      const valuesWith = (text: string): string[] =>
        cookieValues(`${before}user="Bearer ${text}1"; b=2`, 'user', 8)
      const shared = new Set(valuesWith(one)).intersection(new Set(valuesWith(other)))
      expect([...shared]).toEqual([])
    }),
    many,
  )
  // Without a closing quote, the value may end at the blank.
  expect(cookieValues('user="Bearer a; b=2', 'user', 8)).toContain('bearer')
})

test('a plain value counts as one client', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[G-Zg-z][A-Za-z0-9._~-]{0,19}$/), (value) => {
      expect(queryValues(`/x?a=1&user=${value}&b=2`, 'user', 8)).toEqual([value.toLowerCase()])
      expect(cookieValues(`a=1; user=${value}; b="2"`, 'user', 8)).toEqual([value.toLowerCase()])
    }),
    many,
  )
})

/** Milliseconds of CPU that one reading takes. */
function minMs(read: () => unknown): number {
  const readings = (): void => {
    for (let i = 0; i < 4; i++) read()
  }
  return leastTimeSync(maxMs, () => threadCpuUs(readings) / 4000)
}

// 20 ms for 16 KB is twenty times the actual time, and a fiftieth of the time that it took when each occurrence was read to the end.
const maxMs = 20
const largest = 16_384

test.each([
  ['a query of escapes', () => queryValues(`/x?user=${'%2525'.repeat(largest / 5)}`, 'user', 8)],
  ['a query of names', () => queryValues(`/x?${'%75ser=&'.repeat(largest / 8)}`, 'user', 8)],
  ['a query of separators', () => queryValues(`/x?${';&'.repeat(largest / 2)}`, 'user', 8)],
  ['a query of one value', () => queryValues(`/x?${'user=a%00;'.repeat(largest / 10)}`, 'user', 8)],
  ['a cookie of quotes', () => cookieValues('user="'.repeat(largest / 6), 'user', 8)],
  ['a cookie of escaped quotes', () => cookieValues('user=%\\"25 '.repeat(largest / 11), 'user', 8)],
  ['a cookie of blanks', () => cookieValues(`${' '.repeat(largest - 6)}user=a`, 'user', 8)],
  ['a cookie of bytes 0x85', () => cookieValues(`${'\x85'.repeat(largest - 6)}user=a`, 'user', 8)],
  ['a cookie of bytes 0x85 after commas', () => cookieValues('user=,\x85'.repeat(largest / 7), 'user', 8)],
  ['a cookie of blanks and equals signs', () => cookieValues('= '.repeat(largest / 2), 'user', 8)],
  ['a cookie of empty values', () => cookieValues('user= ;'.repeat(largest / 7), 'user', 8)],
  ['a cookie of one value', () => cookieValues('user=a%00 '.repeat(largest / 10), 'user', 8)],
])('%s takes time in proportion to its length', (_, read) => {
  expect(minMs(read)).toBeLessThan(maxMs)
})

test('pairs that are drawn, repeated up to the largest size, take time in proportion to their length', () => {
  const name = fc.constantFrom('user=', '%75ser=', 'user%00=', 'user[]=')
  const value = fc.array(fc.constantFrom('', 'a', '%00', '%2541', '%u0041', '"', '\\', '\xff', '='), {
    maxLength: 3,
  })
  const separator = fc.constantFrom('', ' ', ',', ';', '&', '"', '; ', '\x85', ',\x85')
  const pair = fc
    .tuple(name, value, separator)
    .map(([before, parts, after]) => before + parts.join('') + after)
  const slowCookies = new SlowInputs(1000 * maxMs, (text: string) => cookieValues(text, 'user', 8))
  const slowQueries = new SlowInputs(1000 * maxMs, (text: string) => queryValues(`/x?${text}`, 'user', 8))
  fc.assert(
    fc.property(pair, separator, (unit, ending) => {
      const text = unit.repeat(largest / unit.length) + ending
      slowCookies.measure(text)
      slowQueries.measure(text)
    }),
    { numRuns: runs(100) },
  )
  expect([slowCookies.confirm(), slowQueries.confirm()]).toEqual([undefined, undefined])
})

test('a value in more spellings than can be read quickly counts as too many values', () => {
  const spellings = Array.from({ length: 100 }, (_, i) => `user=a%00${i}`)
  expect(cookieValues(spellings.join(' '), 'user', 8).length).toBeGreaterThan(8)
  expect(queryValues(`/x?${spellings.join('&')}`, 'user', 8).length).toBeGreaterThan(8)
  expect(cookieValues('user=a%00; '.repeat(64), 'user', 8)).toEqual(['a'])
  expect(queryValues(`/x?${'user=a%00&'.repeat(64)}`, 'user', 8)).toEqual(['a'])
})

test('a value that is there more often than can be read quickly counts as too many values', () => {
  expect(cookieValues('user=a '.repeat(100), 'user', 8).length).toBeGreaterThan(8)
  expect(queryValues(`/x?${'user=a&'.repeat(100)}`, 'user', 8).length).toBeGreaterThan(8)
})
