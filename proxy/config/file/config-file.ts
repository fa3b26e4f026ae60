import { lstatSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { reasonOf, showValue, type Problem } from '../../../shared/settings/problems.ts'
import { readBounded } from '../../../shared/settings/read-bounded.ts'

export const defaultName = 'sluice.yaml'
/** The directory that is searched after the working directory. With the gateway's image, the file is mounted there. */
const systemDirectory = '/etc/sluice'
const MAX_BYTES = 1024 * 1024

/** The settings file, or the reason why it cannot be read. */
export type ConfigFile =
  | {
      readonly path: string
      /** The path as it was given, for messages. */
      readonly name: string
      readonly text: string
    }
  | { readonly problem: Problem }

/**
 * Returns the settings file to read: the one that CONFIG_FILE names, else `sluice.yaml` in the working directory if it exists, else the one
 * in `/etc/sluice`. If neither exists, returns the path where the file is expected, which is in `/etc/sluice` if that directory exists.
 *
 * @param given the value of CONFIG_FILE, undefined if it is unset
 * @returns the path as it was given, for messages; relative to `cwd` or absolute
 */
export function locateConfigFile(given: string | undefined, cwd: string, system = systemDirectory): string {
  if (given !== undefined) return given
  return isThere(join(cwd, defaultName)) || !isThere(system) ? defaultName : join(system, defaultName)
}

/**
 * Whether a file or a symbolic link exists. A dangling symbolic link is a failed mount, not a missing file: it exists, and reading it
 * fails.
 */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    // Treat a file that `lstat` cannot inspect as existing: reading it then reports the reason.
    return true
  }
}

/**
 * Reads the settings file that `locateConfigFile` finds. A file that CONFIG_FILE names must exist.
 *
 * @param given the value of CONFIG_FILE, undefined if it is unset
 * @param cwd the directory that a relative path is resolved against
 * @returns undefined if no file is named and the default one does not exist
 */
export function readConfigFile(given: string | undefined, cwd: string): ConfigFile | undefined {
  const name = locateConfigFile(given, cwd)
  const path = resolve(cwd, name)
  if (given === undefined && !isThere(path)) return undefined
  try {
    return {
      path,
      name,
      text: new TextDecoder('utf-8', { fatal: true }).decode(readBounded(path, MAX_BYTES)),
    }
  } catch (error) {
    // The command line may have named it, as FILE or with --config, or the variable CONFIG_FILE.
    const subject =
      given === undefined ? `${name}: ` : `the settings file ${showValue(given)} cannot be read: `
    return {
      problem: {
        line: 0,
        text: `${subject}needs a readable file of UTF-8 text, at most 1 MiB (${reasonOf(error)})`,
      },
    }
  }
}

/** Files in the working directory and in `/etc/sluice` whose name looks like a misspelled `sluice.yaml`. */
export function findNearNames(cwd: string, system = systemDirectory): string[] {
  return [...nearNamesIn(cwd), ...nearNamesIn(system).map((name) => join(system, name))]
}

function nearNamesIn(directory: string): string[] {
  try {
    const names = readdirSync(directory).filter((name) => name !== defaultName)
    return names.filter((name) => name === 'sluice.json' || nearestWord(name, [defaultName]) !== undefined)
  } catch {
    // A directory that cannot be listed is not an error.
    return []
  }
}
