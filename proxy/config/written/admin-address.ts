import { readConfigFile } from '../file/config-file.ts'

/** The default address of the admin listener. */
export const defaultAdminAddress = { host: '127.0.0.1', port: 9090 }

/** A line that sets the host or the port to a plain value. */
const plainSetting = /^(adminHost|adminPort)[ \t]*:[ \t]+(['"]?)([\w.:-]+)\2[ \t]*(?:#.*)?\r?$/gm
const commentLine = /^[ \t]*#.*$/gm
/** The URL that service links set in `SLUICE_ADMIN_PORT` for a service named `sluice-admin`. It is not a port. */
const linkUrl = /^\w+:\/\//

/**
 * Returns the admin listener's address under these settings, for a health check. A health check runs every few seconds as long as the
 * gateway runs, so it skips the table of limits and its checks. It does not fail because of a mistake in the file, as the gateway still
 * runs with the previous version.
 *
 * @param env the environment of the gateway
 * @param cwd the folder against which a relative path of the file is resolved
 * @returns undefined if the file sets the address in another form than `adminPort: 9091`
 */
export function readAdminAddress(
  env: NodeJS.ProcessEnv,
  cwd: string,
): { readonly host: string; readonly port: number } | undefined {
  const given = (name: string): string | undefined =>
    [env[`SLUICE_${name}`], env[name]].find((value) => value && !linkUrl.test(value))
  let host = given('ADMIN_HOST')
  let port = given('ADMIN_PORT')
  if (host === undefined || port === undefined) {
    const file = readConfigFile(given('CONFIG_FILE'), cwd)
    const text = file && 'text' in file ? file.text.replaceAll(commentLine, '') : ''
    const found = new Map<string, string>()
    const rest = text.replaceAll(plainSetting, (_, name: string, _quote: string, value: string) => {
      found.set(name, value)
      return ''
    })
    if (/admin(?:Host|Port)/.test(rest)) return undefined
    host ??= found.get('adminHost')
    port ??= found.get('adminPort')
  }
  return {
    host: host ?? defaultAdminAddress.host,
    port: port === undefined ? defaultAdminAddress.port : Number(port),
  }
}
