import fc from 'fast-check'
import { expect, test } from 'vitest'
import { alphanumerics, createCharacterFilter } from '../../../../proxy/http/fields/kept-characters.ts'

test('a filter keeps the characters that an expression keeps', () => {
  const filter = createCharacterFilter(`${alphanumerics}+/`)
  const text = fc.string({
    unit: fc.constantFrom('a', 'Z', '0', '+', '/', '-', '=', '\xe9', '\0', '\x7f', 'ſ', '字'),
  })
  fc.assert(
    fc.property(text, (sent) => {
      expect(filter(sent)).toBe(sent.replace(/[^A-Za-z0-9+/]/g, ''))
    }),
  )
})
