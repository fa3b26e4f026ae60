import fc from 'fast-check'
import { expect, test } from 'vitest'
import { headersOf } from '../../../../proxy/http/message/headers.ts'

/** Names that are numbers, which V8 treats as indexes up to 2 ** 32 - 2, and properties that every object has. */
const names = fc.constantFrom(
  ...['0', '7', '1000', '4294967293', '4294967294', '4294967295', '07', 'a', 'cookie', 'x-b'],
  ...['__proto__', 'constructor', 'toString'],
)

test('all header lines are kept, whatever their names are', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(names, fc.constantFrom('', '1', '2')), { maxLength: 8 }), (lines) => {
      const expected = new Map<string, string>()
      for (const [name, value] of lines) {
        const before = expected.get(name)
        const separator = name === 'cookie' ? '; ' : ', '
        expected.set(name, before === undefined ? value : before + separator + value)
      }
      const headers = headersOf(lines.flat())
      expect(new Map(Object.entries(headers))).toEqual(expected)
    }),
  )
})
