import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isEqual } from '../../../proxy/config/reload/is-equal.ts'
import { doAtOnce } from '../../../shared/steps.ts'

// A reloaded table is compared in small steps, whose result must equal that of a comparison in one step.

const value = fc.anything({
  withNullPrototype: false,
  withMap: true,
  withSet: true,
  withTypedArray: true,
  maxDepth: 3,
})

test('isEqual agrees with the deep comparison of Node for any two values', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.tuple(value, value),
        value.map((one): [unknown, unknown] => [one, structuredClone(one)]),
      ),
      ([one, other]) => {
        expect(doAtOnce(isEqual(one, other))).toBe(isDeepStrictEqual(one, other))
      },
    ),
  )
})

test.each([
  [{ a: undefined }, {}],
  [[1, undefined], [1]],
  [[1], { 0: 1, length: 1 }],
  [{ a: [{ b: 1 }] }, { a: [{ b: 2 }] }],
  [new URL('http://a/'), new URL('http://b/')],
  [Buffer.from('a'), Buffer.from('b')],
  [null, {}],
])('%j and %j differ', (one, other) => {
  expect(doAtOnce(isEqual(one, other))).toBe(false)
  expect(doAtOnce(isEqual(other, one))).toBe(false)
})
