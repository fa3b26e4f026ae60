import { readConfigFile } from '../file/config-file.ts'
import { readYamlMapping } from '../file/yaml-document.ts'
import { defaultAdminAddress, readAdminAddress } from './admin-address.ts'
import { readPrefixedVariables } from './prefixed-variables.ts'

/**
 * Returns the admin listener's address under these settings, no matter in which form the file sets it. Does not report mistakes in the
 * file: the gateway still runs with the previous version, and a mistake may be why an operator asks it.
 *
 * @param given the environment of the gateway
 * @param cwd the folder against which a relative path of the file is resolved
 */
export function parseAdminAddress(
  given: NodeJS.ProcessEnv,
  cwd: string,
): { readonly host: string; readonly port: number } {
  const { env } = readPrefixedVariables(given)
  const file = readConfigFile(env['CONFIG_FILE'] || undefined, cwd)
  const { value, mistakes } = readYamlMapping(file && 'text' in file ? file.text : '', env)
  // A file with such mistakes has no values, but its lines may still state the address. At the default one, another program may listen, and
  // would get the token.
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
