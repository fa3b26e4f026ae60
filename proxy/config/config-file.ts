import { lstatSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { nearestWord } from '../../shared/settings/did-you-mean.ts'
import { reasonOf, showValue, type Problem } from '../../shared/settings/problems.ts'
import { readBounded } from '../../shared/settings/read-bounded.ts'

export const defaultName = 'sluice.yaml'
const maxBytes = 1024 * 1024

/** The settings file, or why there is none to read. */
export type ConfigFile =
  | {
      readonly path: string
      /** The path as it was given, for messages. */
      readonly name: string
      readonly text: string
    }
  | { readonly problem: Problem }

/**
 * Reads the settings file: the one that CONFIG_FILE names, which must exist, else `sluice.yaml` if it exists.
 *
 * @param given the value of CONFIG_FILE, undefined if it is unset
 * @param cwd the directory that a relative path is resolved against
 * @returns undefined if no file is named and there is none
 */
export function readConfigFile(given: string | undefined, cwd: string): ConfigFile | undefined {
  const name = given ?? defaultName
  const path = resolve(cwd, name)
  try {
    // A dangling symlink is a failed mount, not a missing file: it is an error.
    if (given === undefined && !lstatSync(path, { throwIfNoEntry: false })) return undefined
    return { path, name, text: new TextDecoder('utf-8', { fatal: true }).decode(readBounded(path, maxBytes)) }
  } catch (error) {
    const subject = given === undefined ? `${defaultName}: ` : `CONFIG_FILE: got ${showValue(given)}, `
    return {
      problem: {
        line: 0,
        text: `${subject}needs a readable file of UTF-8 text, at most 1 MiB (${reasonOf(error)})`,
      },
    }
  }
}

/** Names of files in the working directory that look like a misspelled `sluice.yaml`. */
export function findNearNames(cwd: string): string[] {
  try {
    const names = readdirSync(cwd).filter((name) => name !== defaultName)
    return names.filter((name) => name === 'sluice.json' || nearestWord(name, [defaultName]) !== undefined)
  } catch {
    // A directory that cannot be listed is not an error.
    return []
  }
}
