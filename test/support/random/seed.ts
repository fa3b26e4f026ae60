/** What every run draws from unless told otherwise: the same tests give the same answer twice. */
const USUAL_SEED = 20_261

/**
 * The seed of everything that is drawn in tests: of each property of fast-check, of `Math.random`, and of the generators of
 * our own. `TEST_SEED` sets another, as `npm run test:explore` does; a failure is repeated with the seed that it names.
 *
 * @throws RangeError if `TEST_SEED` is no 32-bit integer of 0 or more
 */
export function testSeed(): number {
  const given = process.env['TEST_SEED']
  if (given === undefined || given === '') return USUAL_SEED
  const seed = Number(given)
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 31)
    throw new RangeError(`TEST_SEED: needs an integer from 0 to 2147483647, got ${given}`)
  return seed
}
