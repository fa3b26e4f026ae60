import fc from 'fast-check'
import { expect, test } from 'vitest'
import { withoutBlanksAround, withSpaces } from '../../../../proxy/http/fields/trim-blanks.ts'

const firstBytes = [0xc2, 0xe1, 0xe2, 0xe3, 0xef]
const encodedBlanks = firstBytes.flatMap((first) =>
  Array.from({ length: 64 }, (_, i) => 0x80 + i).flatMap((second) => {
    const two = String.fromCharCode(first, second)
    const three = Array.from({ length: 64 }, (_, i) => two + String.fromCharCode(0x80 + i))
    return [two, ...three].filter((text) => withSpaces(text) === ' ')
  }),
)

test('blanks of several bytes are trimmed wherever they are replaced by spaces', () => {
  expect(encodedBlanks).toHaveLength(22)
  for (const blank of encodedBlanks) {
    expect(withoutBlanksAround(blank)).toBe('')
    expect(withoutBlanksAround(`${blank}a${blank}`)).toBe('a')
  }
})

test('a text is trimmed of blanks and of nothing else', () => {
  const blank = fc.constantFrom(' ', '\t', '\x85', '\xa0', ...encodedBlanks)
  // Bytes with which blanks begin, and the last bytes of some blanks.
  const other = fc.constantFrom(
    'a',
    '\xc2',
    '\xe1',
    '\xe2',
    '\xe2\x80',
    '\xe3\x80',
    '\xef\xbb',
    '\x80',
    '\x9f',
    '\xaf',
  )
  const blanks = fc.array(blank, { maxLength: 6 }).map((all) => all.join(''))
  const inner = fc.array(fc.oneof(blank, other), { maxLength: 6 }).map((all) => `a${all.join('')}a`)
  fc.assert(
    fc.property(blanks, inner, blanks, (before, text, after) => {
      expect(withoutBlanksAround(before + text + after)).toBe(text)
    }),
  )
})
