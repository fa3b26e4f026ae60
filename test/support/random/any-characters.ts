import fc from 'fast-check'

/** Code units that stand for nothing alone. */
const SURROGATES = { first: 0xd800, count: 0x800 }

const character = fc
  .nat(0x10ffff - SURROGATES.count)
  .map((n) => String.fromCodePoint(n < SURROGATES.first ? n : n + SURROGATES.count))

/**
 * Texts of any characters, as those of `unit: 'binary'`, for which fast-check first makes a table of the million characters in each
 * process: seconds of CPU. Names such as `__proto__`, which it draws too, are among those of ASCII.
 */
export function anyCharacters(maxLength: number): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.string({ unit: character, maxLength }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary-ascii', maxLength }) },
  )
}
