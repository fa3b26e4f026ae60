import { baseUrlOf } from '../../../shared/settings/base-url.ts'
import { readConfigFile } from '../../config/file/config-file.ts'
import { readPrefixedVariables } from '../../config/written/prefixed-variables.ts'
import { readYamlMapping } from '../../config/file/yaml-document.ts'

const usualPort = 9090

/**
 * Returns the admin address of a gateway started here, with the same environment and settings file. Does not report mistakes in the file,
 * which may be the reason why the user runs the command.
 */
export function adminHere(given: NodeJS.ProcessEnv, cwd: string): string {
  const { env } = readPrefixedVariables(given)
  const file = readConfigFile(env['CONFIG_FILE'] || undefined, cwd)
  const written = file && 'text' in file ? readYamlMapping(file.text, env).value : {}
  const port = portOf(env['ADMIN_PORT']) ?? portOf(written['adminPort']) ?? usualPort
  const host = env['ADMIN_HOST'] || written['adminHost']
  return baseUrlOf({ host: typeof host === 'string' ? host : '127.0.0.1', port })
}

function portOf(value: unknown): number | undefined {
  return /^[1-9]\d{0,4}$/.test(String(value)) ? Number(value) : undefined
}
