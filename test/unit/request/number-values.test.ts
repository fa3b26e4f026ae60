import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { numberValues } from '../../../proxy/request/values/number-values.ts'
import { runs } from '../../support/random/runs.ts'

// The attack: a client writes one number in ever new forms. The backend reads each as that number, and the gateway as a new client.

describe('a number, read in whole', () => {
  test.each<[text: string, values: string[]]>([
    ['7', ['7']],
    ['07', ['7']],
    ['0007', ['7']],
    ['+7', ['7']],
    ['-7', ['-7']],
    ['-0', ['0']],
    ['0_7', ['7']],
    ['7_0', ['70']],
    ['７', ['7']],
    ['٧', ['7']],
    ['𝟟', ['7']],
    ['+０７', ['7']],
    ['\x1c7\x85', ['7']],
    ['7.', ['7']],
    ['7.0', ['7']],
    ['7.5', ['7']],
    ['7e0', ['7']],
    ['0.7e1', ['0', '7']],
    ['.7e1', ['0', '7']],
    ['700e-2', ['700', '7']],
    ['7e2', ['7', '700']],
    ['7e999999', ['7', '0', '9223372036854775807', '9223372036854775808']],
    ['1e20', ['1', '7766279631452241920', '9223372036854775807', '9223372036854775808']],
    ['0x7', ['7']],
    ['0x0_007', ['7']],
    ['0b111', ['7']],
    ['0o7', ['7']],
    ['0d7', ['7']],
    ['1 2', ['12']],
    ['- 1\x1c 2', ['-12']],
    ['#c', ['12']],
    ['-#0C'.toLowerCase(), ['-12']],
    ['# 0 c', ['12']],
    ['&hc', ['12']],
    ['#0xc', ['12']],
    ['0x0xc', ['12']],
    ['010', ['10', '8']],
    ['08', ['8']],
    ['007', ['7']],
    ['123456789012345678901234567890', ['123456789012345678901234567890']],
    // None of these is a number as a whole.
    ...[
      '',
      '7x',
      '7-title',
      '7,5',
      '7 x',
      '#g',
      '&h',
      '0xg',
      'x7',
      '7.5.1',
      '--7',
      '+',
      '1.2.3.4',
      'abc',
      'äöü',
      '½x',
    ].map((text): [string, string[]] => [text, [text]]),
  ])('%j is %j', (text, values) => {
    expect(numberValues(text, false)).toEqual(values)
  })
})

describe('a number that the backend takes from the beginning of a text', () => {
  test.each<[text: string, values: string[]]>([
    ['7', ['7']],
    ['7x', ['7']],
    ['7-title', ['7']],
    ['07;a', ['7']],
    ['7.5.1', ['7', '751']],
    ['7,5', ['7', '75']],
    ['7_0', ['70', '7']],
    ['7e2x', ['7', '700', '72']],
    ['7e 2x', ['7', '700', '72']],
    ['0x10z', ['0', '16', '10', '8']],
    ['+7 8', ['7', '78']],
    ['#c', ['12']],
    ['0d12x', ['0', '12', '10']],
    ['７x', ['7']],
    // PHP drops all other characters.
    ['x7', ['7']],
    ['x 7-5', ['7']],
    ['\u00e9-7', ['-7']],
    ['x', ['x']],
    ['', ['']],
  ])('%j is %j', (text, values) => {
    expect(numberValues(text, true)).toEqual(values)
  })
})

describe('a UUID', () => {
  const plain = '0fc3a1b2000100020003000000000abc'
  test.each([
    '0fc3a1b2-0001-0002-0003-000000000abc',
    '0fc3a1b2000100020003000000000abc',
    '{0fc3a1b2-0001-0002-0003-000000000abc}',
    '(0fc3a1b2-0001-0002-0003-000000000abc)',
    'urn:uuid:0fc3a1b2-0001-0002-0003-000000000abc',
    'urn:0fc3a1b2000100020003000000000abc',
    '0fc3-a1b2-0001-0002-0003-0000-0000-0abc',
    'fc3a1b2-1-2-3-abc',
    '\x1c{0fc3a1b2000100020003000000000abc}',
    // Python's `UUID` drops these at any length, and converts the rest with `int`.
    `${'}'.repeat(500)}0fc3a1b2${'-'.repeat(500)}000100020003000000000abc${'{'.repeat(500)}`,
    `${'urn:uuid:'.repeat(500)}0fc3a1b2000100020003000000000abc`,
    'uurn:uid:0fc3a1b2000100020003000000000abc',
    'fc3a1b2_000100020003000000000abc',
    '+fc3a1b2000100020003000000000abc',
    'fc3a1b-2000100020003000000000abc',
    // .NET's `Guid.Parse`.
    '{0x0fc3a1b2,0x0001,0x0002,{0x00,0x03,0x00,0x00,0x00,0x00,0x0a,0xbc}}',
    '{0x0000fc3a1b2, 0x1,0x2,\t{0x0,0x3,0x0,0x0,0x0,0x0,0xa,0x00bc} }',
    '+fc3a1b2-0001-0002-0003-000000000abc',
    '0fc3a1b2-+001-0x02-+0x3-0x0000000abc',
    // Java's `UUID.fromString`.
    'fc3a1b2-1-+2-3-0000000000000000abc',
  ])('%j', (text) => {
    expect(numberValues(text, false)).toEqual([plain])
    expect(numberValues(text, true)).toEqual([plain])
  })

  test('a UUID that Python and Java read differently is both', () => {
    const both = ['0000fc3a1b212003000000000000abcd', '0fc3a1b200012003000000000000abcd'].map((text) =>
      text.padEnd(32, '0'),
    )
    expect(numberValues('0000fc3a1b2-1-2003-0000-00000000abcd', false)).toEqual(both)
  })

  test.each(['fc3a1b2-1-2-3', '0fc3a1b2000100020003000000a', 'urn:uuid:', '{}', '1-2-3-4-x'])(
    '%j is not a UUID',
    (text) => expect(numberValues(text, false)).toEqual([text]),
  )
})

const part = fc.constantFrom(
  ...[
    '0',
    '0',
    '7',
    '7',
    '1',
    '_',
    '.',
    'e',
    'e',
    '+',
    '-',
    'x',
    'b',
    'o',
    'd',
    '#',
    '&h',
    '0x',
    '０',
    '７',
    '٧',
    ' ',
    '\t',
    '\x1c',
    'a',
    ',',
  ],
)
const spelled = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(''))

/** Reads a text as Python's `int` does. */
function pythonInt(text: string): string | undefined {
  const ascii = text.replace(/[０７٧]/g, (digit) => (digit === '０' ? '0' : '7'))
  const [, sign = '', digits] = /^[\s\x1c-\x1f]*([+-]?)(\d+(?:_\d+)*)[\s\x1c-\x1f]*$/.exec(ascii) ?? []
  if (digits === undefined) return undefined
  const number = BigInt(digits.replaceAll('_', ''))
  return String(sign === '-' ? -number : number)
}

function whole(number: number): string | undefined {
  return Number.isSafeInteger(Math.trunc(number)) ? String(Math.trunc(number) + 0) : undefined
}

const wholeReaders: Record<string, (text: string) => string | undefined> = {
  "Python's int": pythonInt,
  "JavaScript's Number": (text) => (text.trim() === '' ? undefined : whole(Number(text))),
}

const prefixReaders: typeof wholeReaders = {
  ...wholeReaders,
  parseInt: (text) => whole(Number.parseInt(text, 10)),
  'parseInt, of any base': (text) => whole(Number.parseInt(text)),
  parseFloat: (text) => whole(Number.parseFloat(text)),
}

test.each(Object.entries(wholeReaders))(
  'a text that is a number as a whole to %s counts as that number',
  (_, read) => {
    fc.assert(
      fc.property(spelled, (text) => {
        const number = read(text)
        if (number !== undefined) expect(numberValues(text, false)).toContain(number)
      }),
      { numRuns: runs(10_000) },
    )
  },
)

test.each(Object.entries(prefixReaders))(
  'a text that begins with a number to %s counts as that number',
  (_, read) => {
    fc.assert(
      fc.property(spelled, (text) => {
        const number = read(text)
        if (number !== undefined) expect(numberValues(text, true)).toContain(number)
      }),
      { numRuns: runs(10_000) },
    )
  },
)

test('a canonical value is read as itself', () => {
  fc.assert(
    fc.property(spelled, fc.boolean(), (text, isNumber) => {
      for (const value of numberValues(text, isNumber)) expect(numberValues(value, isNumber)).toEqual([value])
    }),
    { numRuns: runs(10_000) },
  )
})
