import { readConfigFile } from '../file/config-file.ts'
import { readYamlMapping } from '../file/yaml-document.ts'
import { defaultAdminAddress, readAdminAddress } from './admin-address.ts'
import { readPrefixedVariables } from './prefixed-variables.ts'

/**
 * Returns the admin listener's address with these settings, in whatever form the file gives it. Mistakes in the file are not reported: the
 * gateway still runs with the previous version, and they may be the reason for the question.
 *
 * @param given the environment of the gateway
 * @param cwd the folder that a relative path of the file is resolved against
 */
export function parseAdminAddress(
  given: NodeJS.ProcessEnv,
  cwd: string,
): { readonly host: string; readonly port: number } {
  const { env } = readPrefixedVariables(given)
  const file = readConfigFile(env['CONFIG_FILE'] || undefined, cwd)
  const { value, mistakes } = readYamlMapping(file && 'text' in file ? file.text : '', env)
  // A file with such mistakes has no values, but its lines still say it. At the usual port another program may get the token.
  const line = mistakes.length > 0 ? readAdminAddress(given, cwd) : undefined
  const written: Readonly<Record<string, unknown>> = line
    ? { adminHost: line.host, adminPort: line.port }
    : value
  const host = env['ADMIN_HOST'] || written['adminHost']
  return {
    host: typeof host === 'string' ? host : defaultAdminAddress.host,
    port: portOf(env['ADMIN_PORT']) ?? portOf(written['adminPort']) ?? defaultAdminAddress.port,
  }
}

function portOf(value: unknown): number | undefined {
  return /^[1-9]\d{0,4}$/.test(String(value)) ? Number(value) : undefined
}
