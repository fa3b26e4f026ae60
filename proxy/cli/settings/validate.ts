import { resolve } from 'node:path'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { isThere, locateConfigFile } from '../../config/file/config-file.ts'
import { loadGatewaySettings } from '../../config/settings.ts'
import { readPrefixedVariables } from '../../config/written/prefixed-variables.ts'
import { CommandError, formatCountOf, print, printError, printJson, status } from '../output.ts'
import { readListsOf } from './read-lists.ts'
import { environmentWith, nameLimits, type ConfigOption } from './settings.ts'

export type ValidateOptions = ConfigOption & { readonly json?: true }

/** A mistake, with its file and line; mistakes in variables have no line. */
type Mistake = { readonly file?: string; readonly line?: number; readonly text: string }

/**
 * Reads the settings like a gateway that is started here with this file. Prints each mistake on a line, with its place, the given value and
 * the correct form.
 *
 * @param file the settings file; default: the file that a gateway would read
 */
export function validate(file: string | undefined, { config = file, json }: ValidateOptions): number {
  if (file !== undefined && config !== file)
    throw new CommandError('validate needs FILE or --config, not both', status.usage)
  const env = environmentWith(config === undefined ? {} : { config })
  try {
    const { settings, warnings: ofSettings } = loadGatewaySettings(env, process.cwd())
    const warnings = [...ofSettings, ...readListsOf(settings).warnings]
    const rules = settings.rules.length
    if (json) {
      printJson({ valid: true, file: settings.configFile ?? null, rules, mistakes: [], warnings })
      return status.yes
    }
    for (const warning of warnings) printError(`warning: ${warning}`)
    const limits = nameLimits(settings)
    const source = limits === settings.configFile ? '' : ` (${limits})`
    print(`${settings.configFile ?? 'no settings file'}: valid, ${formatCountOf(rules, 'rule')}${source}`)
    return status.yes
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    const given = readPrefixedVariables(env).env['CONFIG_FILE'] || undefined
    const name = locateConfigFile(given, process.cwd())
    const mistakes = error.problems.map((problem) => placed(problem, name))
    const path = resolve(name)
    const read = given === undefined && !isThere(path) ? null : path
    if (json) printJson({ valid: false, file: read, rules: null, mistakes, warnings: [] })
    else for (const problem of error.problems) printError(problem)
    return status.no
  }
}

/** @param name the file's path as it was given, with which its messages begin */
function placed(problem: string, name: string): Mistake {
  if (!problem.startsWith(`${name}:`)) return { text: problem }
  const [, line, text] = /^(\d+): (.*)$/s.exec(problem.slice(name.length + 1)) ?? []
  return text === undefined ? { text: problem } : { file: name, line: Number(line), text }
}
