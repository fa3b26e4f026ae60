import { readConfigFile } from '../file/config-file.ts'

/** The default address of the admin listener. */
export const defaultAdminAddress = { host: '127.0.0.1', port: 9090 }

/** A setting of the table that a line gives as a plain value. */
const plainSetting = /^(adminHost|adminPort)[ \t]*:[ \t]+([\w.:-]+)[ \t]*(?:#.*)?\r?$/gm
const commentLine = /^[ \t]*#.*$/gm
/** The value that service links set for a service named `sluice-admin`: not a port. */
const linkUrl = /^\w+:\/\//

/**
 * Returns the admin listener's address with these settings, for a health check. That is run every few seconds for as long as the gateway
 * runs, so it skips the table of limits and its checks. A mistake in the file does not fail it: the gateway still runs with the previous
 * version.
 *
 * @param env the environment of the gateway
 * @param cwd the folder that a relative path of the file is resolved against
 * @returns undefined if the file gives the address in another form than `adminPort: 9091`
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
    const rest = text.replaceAll(plainSetting, (_, name: string, value: string) => {
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
