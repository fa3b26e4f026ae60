import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { cookieValues } from '../../../proxy/request/values/cookie-values.ts'
import { jsonCookieText } from '../../../proxy/request/values/json-cookie.ts'
import { valuesOf } from '../../../proxy/request/values/decoded-values.ts'

// Express's cookie-parser reads a cookie that begins with `j:` as JSON: `sid=j: "a"` is the same client as `sid=a`.

const values = (sent: string): string[] => cookieValues(sent, 'sid', 8)

const letter = fc.constantFrom('a', 'B', '7', '-', '.', '/', '=')
const text = fc.string({ unit: letter, minLength: 1, maxLength: 12 })
const blanks = fc.string({ unit: fc.constantFrom(' ', '\t'), maxLength: 3 })

/** Each character is written either literally or as a JSON escape. */
const json = fc.array(fc.tuple(letter, fc.boolean()), { minLength: 1, maxLength: 12 }).map((letters) => ({
  text: letters.map(([each]) => each).join(''),
  sent: letters
    .map(([each, isEscaped]) => (isEscaped ? `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}` : each))
    .join(''),
}))

test('a cookie of JSON counts for the client that Express reads', () => {
  fc.assert(
    fc.property(json, blanks, blanks, fc.nat(3), ({ text: read, sent }, before, after, way) => {
      const plain = `j:${before}"${sent}"${after}`
      const cookie = way === 0 ? encodeURIComponent(plain) : way === 1 ? `"${plain}"` : plain
      expect(values(`sid=${cookie}`)).toEqual(
        expect.arrayContaining([...valuesOf(read, { isQuoted: true, isNumber: false })]),
      )
    }),
  )
})

test.each([
  ['sid=j:7', '7'],
  ['sid=j: 1e+2', '100'],
  ['sid=j:["abc"]', 'abc'],
  ['sid=j:"\\u00e9"', 'é'],
  ['a=b; sid="j:%22abc%22"; c=d', 'abc'],
])('%s counts as %s', (sent, value) => {
  expect(values(sent)).toContain(value)
})

test('a cookie that only begins as JSON counts as its text', () => {
  fc.assert(
    fc.property(text, (sent) => {
      expect(values(`sid=J:${sent}`)).toEqual([...valuesOf(`J:${sent}`, { isQuoted: true, isNumber: false })])
    }),
  )
  expect(values('sid=j:')).toEqual(['j:'])
  expect(values('sid=j:abc')).toEqual(['j:abc'])
  expect(values('sid=j:null')).toEqual(['j:null'])
})

test('each spelling of a JSON cookie is parsed once, and only a few are', () => {
  const parse = vi.spyOn(JSON, 'parse')
  const seen = (cookies: string): number => {
    parse.mockClear()
    values(cookies)
    return parse.mock.calls.length
  }
  // A parse error takes ten microseconds.
  expect(seen('sid=j:[1,'.repeat(1000))).toBeLessThan(10)
  expect(seen(Array.from({ length: 1000 }, (_, i) => `sid=j:[${i}`).join(';'))).toBeLessThan(100)
  parse.mockRestore()
})

test('nested arrays count as the text that JavaScript joins them to', () => {
  const leaf = fc.oneof(letter, fc.integer(), fc.constant(null), fc.boolean())
  const { nested } = fc.letrec<{ nested: unknown }>((tie) => ({
    nested: fc.oneof({ depthSize: 'medium' }, leaf, fc.array(tie('nested'), { maxLength: 3 })),
  }))
  fc.assert(
    fc.property(fc.array(nested, { maxLength: 4 }), (value) => {
      expect(jsonCookieText(`j:${JSON.stringify(value)}`)).toBe(value.join())
    }),
  )
})
