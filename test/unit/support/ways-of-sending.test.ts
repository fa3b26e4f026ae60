import fc from 'fast-check'
import { expect, test } from 'vitest'
import { waysOfSending } from '../../support/http/raw-client.ts'
import { seededRandom } from '../../support/random/seeded-random.ts'

test.each(Object.entries(waysOfSending))('the pieces are all the bytes, in order: %s', (_, cut) => {
  const short = fc.string({ unit: fc.constantFrom('a', '\r', '\n', '\0', '\xff') })
  const bytes = fc.tuple(short, fc.nat(9000)).map(([unit, length]) => unit.repeat(length).slice(0, length))
  fc.assert(
    fc.property(bytes, fc.nat(), (bytes, seed) => {
      const pieces = cut(bytes, seededRandom(seed))
      expect(pieces.join('')).toBe(bytes)
      expect(pieces).not.toContain(bytes === '' ? undefined : '')
    }),
  )
})

test('up to 4 KB byte by byte are single bytes, and so are 512 at each end of more', () => {
  const cut = (length: number): number[] =>
    waysOfSending['byte by byte']('\n'.repeat(length)).map((piece) => piece.length)
  expect(new Set(cut(4096))).toEqual(new Set([1]))
  const lengths = cut(20_000)
  expect(new Set(lengths.slice(0, 512))).toEqual(new Set([1]))
  expect(new Set(lengths.slice(-512))).toEqual(new Set([1]))
  expect(Math.max(...lengths)).toBe(process.env['PROPERTY_RUNS'] === 'all' ? 1 : 31)
})
