import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cookieValues } from '../../../proxy/request/values/cookie-values.ts'
import { valuesOf } from '../../../proxy/request/values/decoded-values.ts'

// WebOb reads `\\"` in a cookie as a quote. Other readers remove quotes first, and then the backslash escapes the next character.

const text = fc.string({
  unit: fc.constantFrom('a', '7', '2', '5', '%', '%25', '%36', '"'),
  minLength: 1,
  maxLength: 12,
})

test('a cookie with escaped quotes counts for the client that WebOb reads', () => {
  fc.assert(
    fc.property(text, (value) => {
      const sent = value.replaceAll('"', '\\"')
      const counted = cookieValues(`sid=a${sent}z`, 'sid', 8)
      expect(counted).toEqual(
        expect.arrayContaining([...valuesOf(`a${value}z`, { isQuoted: true, isNumber: false })]),
      )
    }),
  )
})

test('a cookie with an escape in an escape counts for the client that is read, whether it is unquoted or decoded first', () => {
  // `%25` and digits may become an escape, and a backslash with them one for a byte.
  const pieces = fc.array(fc.constantFrom('%25', '%36', '%33', '\\', '3', '6', 'a'), { maxLength: 8 })
  const readers = [
    (sent: string) =>
      sent.replace(/\\([0-3][0-7]{2})|\\([^])/g, (_, byte?: string, other: string = '') =>
        byte === undefined ? other : String.fromCharCode(Number.parseInt(byte, 8)),
      ),
    (sent: string) =>
      sent.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  ]
  fc.assert(
    fc.property(pieces, fc.constantFrom(...readers), (sent, read) => {
      const value = `a${sent.join('')}z`
      // No client is identified by a value with a backslash.
      fc.pre(!value.includes('\\\\'))
      const counted = cookieValues(`sid=${value}`, 'sid', 100)
      expect(counted).toEqual(
        expect.arrayContaining([...valuesOf(read(value), { isQuoted: true, isNumber: false })]),
      )
    }),
  )
})

test('a cookie with too many bytes of backslashes and other escapes has too many values', () => {
  expect(cookieValues(`sid=${'a\\%33'.repeat(400)}`, 'sid', 8)).toHaveLength(1)
  expect(cookieValues(`sid=${'a\\%33'.repeat(420)}`, 'sid', 8).length).toBeGreaterThan(8)
  expect(cookieValues(`sid="${'a\\054'.repeat(2000)}"`, 'sid', 8)).toHaveLength(1)
})

test('a cookie as long as browsers send is read if it is JSON with escaped quotes', () => {
  const json = '{"name":"a \\"b\\", c","list":[1,2,3]}'.repeat(200).slice(0, 3000)
  const quoted = `"${json.replaceAll('"', '\\"')}"`
  expect(quoted.length).toBeGreaterThan(3500)
  expect(cookieValues(`a=b; sid=${quoted}; c=d`, 'sid', 8).length).toBeLessThanOrEqual(8)
})
