import { statSync, type Stats } from 'node:fs'
import { resolve } from 'node:path'
import { printable } from '../../../shared/settings/problems.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { locateConfigFile } from '../../config/file/config-file.ts'
import { signatureOf, watchFile } from '../../config/reload/watch-file.ts'
import { loadGatewaySettings, type GatewaySettings } from '../../config/settings.ts'
import { readPrefixedVariables } from '../../config/written/prefixed-variables.ts'
import { secretFiles } from '../../config/written/secret-files.ts'
import { fitToOpenFiles, readOpenFilesLimit } from '../observe/open-files.ts'
import { readInThread } from './read-in-thread.ts'
import type { ReadSettings, SettingsSource } from './reloader.ts'

/** The settings at the start, and the source to read them again. */
export type ReadAtStart = {
  readonly settings: GatewaySettings
  readonly warnings: readonly string[]
  readonly source: SettingsSource
}

/** A settings file of this size has about forty rules, and is read and checked in some 10 ms of CPU. */
const SMALL_BYTES = 4096

/**
 * Reads the settings from the environment and the settings file.
 *
 * @returns the settings, lowered to fit the limit of open files, and the source to read them again
 * @throws SettingsError with every problem
 */
export function readSettings(env: NodeJS.ProcessEnv, cwd: string): ReadAtStart {
  const { env: unprefixed } = readPrefixedVariables(env)
  const file = resolve(cwd, locateConfigFile(unprefixed['CONFIG_FILE'] || undefined, cwd))
  const seen = signatureOf(file)
  const read = loadGatewaySettings(env, cwd)
  const files = new Map([['CONFIG_FILE', file], ...secretFiles(unprefixed, cwd)])
  let { hasFields } = read.settings
  const fitted = fitToOpenFiles(read.settings, readOpenFilesLimit())
  return {
    settings: fitted.settings,
    warnings: [...read.warnings, ...fitted.warnings],
    source: {
      written: read.settings,
      signature: () => signatureOf(file),
      watch: (changed) => watchFile(file, seen, changed),
      async load() {
        const mistakes = whyNotAgain(files)
        if (mistakes.length > 0) return { mistakes: mistakes.map(printable) }
        const isSmall = (look(file)?.size ?? 0) <= SMALL_BYTES
        const next = isSmall ? readHere(env, cwd) : await readInThread({ env, cwd })
        if (!('settings' in next)) return next
        const { configFile, hasFields: hasNow } = next.settings
        // An editor may empty the file before it writes it. The built-in table must not replace the limits of the file meanwhile.
        if (hasFields && !hasNow) return { mistakes: [printable(whyKept(file, configFile !== undefined))] }
        hasFields = hasNow
        return next
      },
    },
  }
}

/** Reads the settings in this thread: the reload is faster, and needs no memory for another thread. */
function readHere(env: NodeJS.ProcessEnv, cwd: string): ReadSettings {
  try {
    return loadGatewaySettings(env, cwd)
  } catch (error) {
    if (error instanceof SettingsError) return { mistakes: error.problems }
    throw error
  }
}

/** Finds files that are pipes. Opening a pipe again would block this process, and all requests, until somebody writes to it. */
function whyNotAgain(files: ReadonlyMap<string, string>): string[] {
  return [...files].flatMap(([variable, path]) =>
    look(path)?.isFIFO() ? [`${variable}: ${path} is a pipe, which cannot be read again`] : [],
  )
}

function whyKept(file: string, isThere: boolean): string {
  return `${file}: is ${isThere ? 'empty' : 'missing'}, but had settings before`
}

/** Returns undefined if the file cannot be inspected. Reading it then reports the reason. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
