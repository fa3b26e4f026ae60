import type { Sluice, SluiceOptions } from './sluice.ts'

export { createClock, type SluiceClock, type TestClock } from './clock.ts'
export type { Sluice, SluiceOptions } from './sluice.ts'
export type { SluiceYaml } from '../../config/written/sluice-yaml.ts'

/** The oldest major version in `engines` of package.json, which npm only warns about. */
const oldestMajor = 24

/**
 * Starts a gateway in this process, for tests: the same as `sluice run` with one process, but that it leaves signals,
 * uncaught exceptions and the environment alone.
 *
 * The gateway is imported here: an older Node finds a syntax error in it before any code runs, and `require` takes no module that waits
 * for others.
 *
 * @throws SettingsError (an Error whose `problems` says each) for settings that `sluice validate` refuses, Error where a
 *   port cannot be opened, or Node is too old
 */
export async function startSluice(options: SluiceOptions): Promise<Sluice> {
  const { node } = process.versions
  if (Number.parseInt(node, 10) < oldestMajor)
    throw new Error(
      `sluice/embedded needs Node.js ${oldestMajor} or later, and this is ${node} (${process.execPath})`,
    )
  const { startHere } = await import('./start-here.ts')
  return startHere(options)
}
