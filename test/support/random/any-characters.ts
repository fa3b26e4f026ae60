import fc from 'fast-check'

/** Surrogates, which are not characters by themselves. */
const SURROGATES = { first: 0xd800, count: 0x800 }

const character = fc
  .nat(0x10ffff - SURROGATES.count)
  .map((n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count))

/**
 * Strings of any characters, like those of fast-check's `unit: 'binary'`, which costs each process seconds of CPU for a table of a million
 * characters. The ASCII strings include names such as `__proto__`, which fast-check draws on purpose.
 */
export function anyCharacters(maxLength: number): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.string({ unit: character, maxLength }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary-ascii', maxLength }) },
  )
}
