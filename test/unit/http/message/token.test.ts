import { expect, test } from 'vitest'
import { token } from '../../../../proxy/http/message/token.ts'

test('a token has letters, digits and 15 other characters of ASCII, and is not empty', () => {
  const characters = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code))
  const inTokens = characters.filter((character) => token.test(`a${character}`))
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  // RFC 9110 section 5.6.2.
  expect(new Set(inTokens)).toEqual(new Set(`!#$%&'*+-.^_\`|~0123456789${letters}`))
  expect(token.test('')).toBe(false)
})
