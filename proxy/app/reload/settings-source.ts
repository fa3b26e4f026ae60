import { statSync, type Stats } from 'node:fs'
import { resolve } from 'node:path'
import { SettingsError } from '../../../shared/settings/settings.ts'
import { locateConfigFile } from '../../config/config-file.ts'
import { signatureOf, watchFile } from '../../config/reload/watch-file.ts'
import { loadGatewaySettings, type GatewaySettings } from '../../config/settings.ts'
import { readPrefixedVariables } from '../../config/written/prefixed-variables.ts'
import { secretFiles } from '../../config/written/secret-files.ts'
import { fitToOpenFiles, readOpenFilesLimit } from '../open-files.ts'
import type { SettingsSource } from './reloader.ts'

/**
 * Reads the settings from the environment and the settings file.
 *
 * @returns them as far as this process may have open files, and how to read them again
 * @throws SettingsError with every problem
 */
export function readSettings(
  env: NodeJS.ProcessEnv,
  cwd: string,
): {
  readonly settings: GatewaySettings
  readonly warnings: readonly string[]
  readonly source: SettingsSource
} {
  const { env: unprefixed } = readPrefixedVariables(env)
  const file = resolve(cwd, locateConfigFile(unprefixed['CONFIG_FILE'] || undefined, cwd))
  const seen = signatureOf(file)
  const read = loadGatewaySettings(env, cwd)
  const files = new Map([['CONFIG_FILE', file], ...secretFiles(unprefixed, cwd)])
  let hasLimits = read.settings.limitsFile !== undefined
  const fitted = fitToOpenFiles(read.settings, readOpenFilesLimit())
  return {
    settings: fitted.settings,
    warnings: [...read.warnings, ...fitted.warnings],
    source: {
      written: read.settings,
      signature: () => signatureOf(file),
      watch: (changed) => watchFile(file, seen, changed),
      load() {
        const problems = whyNotAgain(files)
        if (hasLimits && isEmpty(file)) problems.push(`${file}: is empty, and had limits before`)
        if (problems.length > 0) throw new SettingsError(problems)
        const next = loadGatewaySettings(env, cwd)
        hasLimits = next.settings.limitsFile !== undefined
        return next
      },
    },
  }
}

/** To open a pipe again waits for whoever would write to it, and all requests with it. */
function whyNotAgain(files: ReadonlyMap<string, string>): string[] {
  return [...files].flatMap(([variable, path]) =>
    look(path)?.isFIFO() ? [`${variable}: ${path} is a pipe, which cannot be read again`] : [],
  )
}

/** As a file is while an editor, or a redirected output, writes it anew: that would mean the built-in table. */
function isEmpty(path: string): boolean {
  const found = look(path)
  return found !== undefined && found.isFile() && found.size === 0
}

/** Undefined where there is nothing to be seen: reading it says why. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
