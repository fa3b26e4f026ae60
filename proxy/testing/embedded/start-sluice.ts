import type { Sluice, SluiceOptions } from './sluice.ts'

export { createClock, type SluiceClock, type TestClock } from './clock.ts'
export type { Sluice, SluiceOptions } from './sluice.ts'
export type { SluiceYaml } from '../../config/written/sluice-yaml.ts'

/** The oldest major version in `engines` of package.json, which npm only warns about. */
const MIN_NODE_MAJOR = 24

/**
 * Starts a gateway in this process, for tests. It is the same as `sluice run` with one process, except that it does not handle signals or
 * uncaught exceptions, and does not read the environment.
 *
 * @throws SettingsError (an Error with a list of `problems`) for settings that `sluice validate` refuses; Error if a port cannot be opened,
 *   or Node is too old
 */
export async function startSluice(options: SluiceOptions): Promise<Sluice> {
  const { node } = process.versions
  if (Number.parseInt(node, 10) < MIN_NODE_MAJOR)
    throw new Error(
      `sluice/embedded needs Node.js ${MIN_NODE_MAJOR} or later, and this is ${node} (${process.execPath})`,
    )
  // Dynamically: an older Node would report a syntax error before any code runs, and `require` cannot load modules with top-level await.
  const { startHere } = await import('./start-here.ts')
  return startHere(options)
}
