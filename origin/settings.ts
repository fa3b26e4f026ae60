import { baseUrl, listenHost } from '../shared/settings/addresses.ts'
import { filePath, logLevel, port } from '../shared/settings/kinds.ts'
import { readSettings, throwProblems } from '../shared/settings/settings.ts'
import { publishedAddress } from './published-address.ts'
import { setting, type SettingsOf } from '../shared/settings/table.ts'

/** Every setting of the origin, read from the environment alone: kind, default, meaning. */
export const originTable = {
  originHost: setting(listenHost, '127.0.0.1', 'Address that the origin listens on'),
  originPort: setting(port, 3000, 'Port that the origin listens on; 0 picks a free one'),
  originDb: setting(filePath, 'data/origin.db', 'SQLite file that holds the keys'),
  originPublicUrl: setting(
    baseUrl,
    undefined,
    'Base URL in the curl command that the first start prints; default: its own address',
  ),
  originPublished: setting(
    publishedAddress,
    undefined,
    'Port at which compose publishes the service, with or without an address before it, for the same command',
  ),
  logLevel: setting(logLevel, 'info', 'Minimum level of the log lines that are written'),
}

export type OriginSettings = SettingsOf<typeof originTable>

/**
 * Reads the origin's settings.
 *
 * @throws SettingsError with every problem
 */
export function loadOriginSettings(env: NodeJS.ProcessEnv): { settings: OriginSettings; warnings: string[] } {
  const { values, problems } = readSettings(originTable, env)
  throwProblems(problems)
  return { settings: values as OriginSettings, warnings: [] }
}
