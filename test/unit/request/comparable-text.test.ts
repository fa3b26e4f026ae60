import { expect, test } from 'vitest'
import { bodyValues } from '../../../proxy/limits/keys/body/key-body.ts'

function valuesOf(text: string): readonly string[] {
  return bodyValues(Buffer.from(text).toString('latin1'), false)
}

const collator = new Intl.Collator('und', { sensitivity: 'base' })
/** Numerals of ancient scripts, and beyond the basic plane, are no digits of names. */
const isRareNumeral = /\p{No}|\p{Nl}/u

test('whatever the collation of Unicode takes for a letter, a digit or nothing is compared as that', () => {
  const different: string[] = []
  for (let code = 0x80; code < 0x2_0000; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const letter = String.fromCodePoint(code)
    if (isRareNumeral.test(letter)) continue
    const isLatin = collator.compare(letter, '0') >= 0 && collator.compare(letter, 'z') <= 0
    const same = isLatin
      ? Array.from('0123456789abcdefghijklmnopqrstuvwxyz').find((one) => collator.compare(letter, one) === 0)
      : undefined
    const isNothing = collator.compare(`a${letter}b`, 'ab') === 0
    if (same !== undefined && !valuesOf(`a${letter}b`).includes(`a${same}b`))
      different.push(`${code.toString(16)} ${same}`)
    if (isNothing && !valuesOf(`a${letter}b`).includes('ab')) different.push(code.toString(16))
  }
  expect(different).toEqual([])
})

test.each([
  ['controls', 'a\u0001d\u001fm\u007fin'],
  ['what Java and Python trim', '\u0001 \u001cadmin\u001d \u0002'],
  ['NUL', '\0a\0dmin'],
  ['an escaped NUL', '%00a%2500dmin'],
  ['letters in circles', 'a🅳min'],
  ['letters above others', 'adm\u0365n'],
  ['a plus', 'admin\uff0b'],
])('%s in the name of an account make no other one', (_, text) => {
  expect(valuesOf(text)).toContain('admin')
})

test('to some databases ß is one s, to others two', () => {
  expect(valuesOf('ßam')).toEqual(['ssam', 'sam'])
  expect(valuesOf('%c3%9fam')).toEqual(['ssam', 'sam'])
})

test('taking characters apart does not make a text longer without bound', () => {
  expect(valuesOf('\ufdfa'.repeat(680))[0]?.length).toBeLessThanOrEqual(4096)
})
