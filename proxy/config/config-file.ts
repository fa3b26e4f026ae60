import { closeSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { nearestWord } from '../../shared/settings/did-you-mean.ts'
import { reasonOf, showValue, type Problem } from '../../shared/settings/problems.ts'

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
 * Reads the settings file: what CONFIG_FILE names, which has to be there, else `sluice.yaml` where it is there.
 *
 * @param given CONFIG_FILE, undefined where it is unset
 * @param cwd where a relative path begins
 * @returns undefined where no file is asked for and none is there
 */
export function readConfigFile(given: string | undefined, cwd: string): ConfigFile | undefined {
  const name = given ?? defaultName
  const path = resolve(cwd, name)
  try {
    // A link that leads nowhere is a mount that failed, not a file that was never there.
    if (given === undefined && !lstatSync(path, { throwIfNoEntry: false })) return undefined
    return { path, name, text: new TextDecoder('utf-8', { fatal: true }).decode(readBounded(path)) }
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

/** Names in the working directory that somebody may have meant as that of the settings file. */
export function findNearNames(cwd: string): string[] {
  try {
    const names = readdirSync(cwd).filter((name) => name !== defaultName)
    return names.filter((name) => name === 'sluice.json' || nearestWord(name, [defaultName]) !== undefined)
  } catch {
    // A directory that may not be listed is no mistake.
    return []
  }
}

/** Reads in pieces: what is no regular file (a pipe, /dev/stdin) does not tell its size. */
function readBounded(path: string): Buffer {
  const buffer = Buffer.alloc(maxBytes + 1)
  const file = openSync(path, 'r')
  try {
    let length = 0
    for (;;) {
      const read = readSync(file, buffer, length, buffer.length - length, null)
      if (read === 0) return buffer.subarray(0, length)
      length += read
      if (length > maxBytes) throw new Error('the file is larger')
    }
  } finally {
    closeSync(file)
  }
}
