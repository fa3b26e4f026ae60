/** The default seed, so that every run of the same tests gives the same result. */
const USUAL_SEED = 20_261

/**
 * The seed of everything random in tests: fast-check's properties, `Math.random`, and our own generators. `TEST_SEED` sets another seed, as
 * `npm run test:explore` does; to repeat a failure, set the seed that it names.
 *
 * @throws RangeError if `TEST_SEED` is not a non-negative 32-bit integer
 */
export function testSeed(): number {
  const given = process.env['TEST_SEED']
  if (given === undefined || given === '') return USUAL_SEED
  const seed = Number(given)
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 31)
    throw new RangeError(`TEST_SEED: needs an integer from 0 to 2147483647, got ${given}`)
  return seed
}
