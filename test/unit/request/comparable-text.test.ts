import { expect, test } from 'vitest'
import { bodyValues } from '../../../proxy/limits/keys/body/key-body.ts'

function valuesOf(text: string): readonly string[] {
  return bodyValues(Buffer.from(text).toString('latin1'), false)
}

const collator = new Intl.Collator('und', { sensitivity: 'base' })
test("letters, digits and ignored characters are compared as Unicode's collation does", () => {
  const different: string[] = []
  for (let code = 0x80; code < 0x2_0000; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const letter = String.fromCodePoint(code)
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

const scripts =
  /[\p{scx=Arab}\p{scx=Bopo}\p{scx=Cyrl}\p{scx=Geor}\p{scx=Grek}\p{scx=Hebr}\p{scx=Hira}\p{scx=Kana}\p{Radical}]/u

test('letters of other scripts that are one to the collation of Unicode are compared as one', () => {
  const letters = Array.from({ length: 0xffff - 0x80 }, (_, i) => String.fromCodePoint(i + 0x80))
    .filter((letter) => scripts.test(letter) && /\p{L}|\p{M}|\p{So}/u.test(letter))
    .sort((a, b) => collator.compare(`a${a}b`, `a${b}b`))
  const different = letters.filter((letter, i) => {
    const before = letters[i - 1] ?? ''
    if (collator.compare(`a${letter}b`, `a${before}b`) !== 0) return false
    const known = valuesOf(`a${before}b`)
    return !valuesOf(`a${letter}b`).some((value) => known.includes(value))
  })
  expect(different).toEqual([])
  expect(letters.length).toBeGreaterThan(1500)
})

test.each([
  ['サクラ', 'さくら'],
  ['ﾊﾊ', 'ぱぱ'],
  ['ႠႬႠ', 'ანა'],
  ['user⓫', 'user11'],
  ['ꜳron', 'aaron'],
  ['𒐕anna', '1anna'],
])('%s is compared as %s', (text, same) => {
  expect(valuesOf(text)).toEqual(expect.arrayContaining([...valuesOf(same)]))
})

test('characters beyond the Basic Multilingual Plane compare as equal, as in some databases', () => {
  const [anna] = valuesOf('anna🍣')
  for (const last of ['🍺', '𠮷', '\ufffd', '𝒶', '\u{e0101}', '🅐'])
    expect(valuesOf(`anna${last}`), last).toContain(anna)
  expect(valuesOf('𝒶nna')).toContain('anna')
  expect(valuesOf('anna🍣')).toHaveLength(1)
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

test('ß is compared as one s and as two, as databases differ', () => {
  expect(valuesOf('ßam')).toEqual(['ssam', 'sam'])
  expect(valuesOf('%c3%9fam')).toEqual(['ssam', 'sam'])
})

test('characters beyond the planes of letters are the same one, but for those that Unicode leaves out or takes apart', () => {
  const different: string[] = []
  for (let first = 0x2_0000; first < 0x11_0000; first += 0x100) {
    const characters = Array.from({ length: 0x100 }, (_, i) => String.fromCodePoint(first + i))
    const others = characters.filter((character) => {
      if (isUnseen.test(character)) return !valuesOf(`a${character}b`).includes('ab')
      const apart = character.normalize('NFKD')
      return apart !== character && valuesOf(character)[0] !== valuesOf(apart)[0]
    })
    const rare = characters.filter(
      (character) => !isUnseen.test(character) && character.normalize('NFKD') === character,
    )
    if (rare.length > 0 && valuesOf(rare.join(''))[0] !== '\u{20000}'.repeat(rare.length))
      others.push(rare[0] ?? '')
    different.push(...others.map((character) => character.codePointAt(0)?.toString(16) ?? ''))
  }
  expect(different).toEqual([])
})

const isUnseen = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}]/u

test('a sigma at the end of a word is the same letter as any other', () => {
  expect(valuesOf('ὈΔΥΣΣΕΎΣ')).toEqual(valuesOf('οδυσσευσ'))
  expect(valuesOf('οδυσσεύς@example.org')).toEqual(['οδυσσευσ@example.org'])
})

test('taking characters apart does not make a text longer without bound', () => {
  expect(valuesOf('\ufdfa'.repeat(680))[0]?.length).toBeLessThanOrEqual(4096)
})
