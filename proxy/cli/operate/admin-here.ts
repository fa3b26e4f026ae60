import { baseUrlOf } from '../../../shared/settings/base-url.ts'
import { readConfigFile } from '../../config/file/config-file.ts'
import { readYamlMapping } from '../../config/file/yaml-document.ts'
import { defaultAdminAddress, readAdminAddress } from '../../config/written/admin-address.ts'
import { readPrefixedVariables } from '../../config/written/prefixed-variables.ts'

/**
 * Returns the admin address of a gateway started here, with the same environment and settings file. Does not report mistakes in the file,
 * which may be the reason why the user runs the command.
 */
export function adminHere(given: NodeJS.ProcessEnv, cwd: string): string {
  const { env } = readPrefixedVariables(given)
  const file = readConfigFile(env['CONFIG_FILE'] || undefined, cwd)
  const { value, mistakes } = readYamlMapping(file && 'text' in file ? file.text : '', env)
  // A file with such mistakes has no values, but its lines still say it. At the usual port another program may get the token.
  const line = mistakes.length > 0 ? readAdminAddress(given, cwd) : undefined
  const written: Readonly<Record<string, unknown>> = line
    ? { adminHost: line.host, adminPort: line.port }
    : value
  const port = portOf(env['ADMIN_PORT']) ?? portOf(written['adminPort']) ?? defaultAdminAddress.port
  const host = env['ADMIN_HOST'] || written['adminHost']
  return baseUrlOf({ host: typeof host === 'string' ? host : defaultAdminAddress.host, port })
}

function portOf(value: unknown): number | undefined {
  return /^[1-9]\d{0,4}$/.test(String(value)) ? Number(value) : undefined
}
