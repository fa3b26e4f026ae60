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
