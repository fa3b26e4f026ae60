import { expect, test } from 'vitest'
import { readProjectName } from '../../origin/project-name.ts'

test.each([
  ['Shop', 'Shop'],
  ['  Shop & more ', 'Shop & more'],
  ['店', '店'],
  ['x'.repeat(100), 'x'.repeat(100)],
  ['\u{1f600}'.repeat(100), '\u{1f600}'.repeat(100)],
  ['u\u0308', '\u00fc'],
])('%j is kept as %j', (text, name) => {
  expect(readProjectName(text)).toBe(name)
})

test.each([
  ['nothing', ''],
  ['blanks', ' \t '],
  ['101 characters', 'x'.repeat(101)],
  ['a line feed', 'a\nb'],
  ['a NUL', 'a\0b'],
  ['an escape', 'a\u001b[31m'],
  ['a C1 control', 'a\u009bb'],
  ['a change of direction', 'a\u202eb'],
  ['a zero-width blank', 'a\u200bb'],
  ['a line separator', 'a\u2028b'],
  ['half a character', 'a\ud800'],
])('%s is refused', (_, text) => {
  expect(readProjectName(text)).toBeUndefined()
})
