import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPlainWord } from '../../proxy/limits/conditions/plain-words.ts'
import { credentialKeys, tokenKeys } from '../../proxy/limits/keys/credentials/credential-keys.ts'
import { valuesOf } from '../../proxy/request/values/decoded-values.ts'
import { numberValues } from '../../proxy/request/values/number-values.ts'

// Conditions compare a plain word literally. If some backend read one of these words as a number, a UUID or a token, `when` would miss what
// that backend reads.

const piece = fc.constantFrom(
  'a',
  'e',
  'f',
  'g',
  'x',
  'ey',
  '0',
  '1',
  '12345678',
  '-',
  '-',
  '.',
  '_',
  '/',
  '~',
  'ab12',
)
const word = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join(''))

test('a plain word has no other spelling for any reader of values', () => {
  let count = 0
  fc.assert(
    fc.property(word, (text) => {
      if (!isPlainWord(text)) return
      count += 1
      const lower = (texts: readonly string[]) => texts.map((each) => each.toLowerCase())
      expect(numberValues(text, false)).toEqual([text])
      expect(lower(tokenKeys(text))).toEqual([text])
      expect(lower(credentialKeys(text))).toEqual([`bearer ${text}`])
      expect(valuesOf(text, { isQuoted: true, isNumber: false })).toEqual([text])
    }),
    { numRuns: 5000 },
  )
  expect(count).toBeGreaterThan(1000)
})

test.each(['7', '1e3', 'a-1-2-3-4', 'deadbeefdeadbeefdeadbeefdeadbeef', 'ey.a.b', '', 'g'.repeat(40), 'é'])(
  'the checker of wordings finds %s',
  (text) => {
    expect(isPlainWord(text)).toBe(false)
  },
)
