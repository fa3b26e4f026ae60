import { createServer } from 'node:http'
import type { Log } from '../../shared/log.ts'
import type { Running } from '../../shared/shutdown.ts'
import { createClientRoutes } from '../admin/api-clients.ts'
import { createApiRoutes } from '../admin/api.ts'
import type { ClientOperations } from '../admin/client-operations.ts'
import { limitConnections } from '../admin/connections.ts'
import { adminServerOptions, createAdminHandler, type AdminDeps } from '../admin/server.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { createAddressReader } from '../request/client-address.ts'
import { adminConnectionsWithin, readOpenFilesLimit } from './open-files.ts'
import { listenOn } from './server.ts'
import { version } from './version.ts'

/** The listener of operators and their tools, apart from that of the clients. */
export type Admin = Running & {
  /** Resolves with the port. */
  listen(): Promise<number>
}

export function composeAdmin(
  settings: GatewaySettings,
  log: Log,
  state: Pick<AdminDeps, 'readHealth' | 'readMetrics'> & { readonly clients: ClientOperations },
): Admin {
  const { adminHost: host, adminPort: port, adminToken: token } = settings
  const limitsEnabled = !settings.rateLimitingDisabled
  const rules = limitsEnabled ? settings.rules : []
  const statusRoutes = createApiRoutes({
    version,
    limitsEnabled,
    rules: rules.length,
    workers: settings.workers,
    uptimeMs: () => process.uptime() * 1000,
    readHealth: state.readHealth,
  })
  const addresses = createAddressReader([], { ipv6Prefix: settings.ipv6Prefix })
  const clientRoutes = createClientRoutes({ limitsEnabled, rules, addresses, clients: state.clients })
  const apiRoutes = new Map([...statusRoutes, ...clientRoutes])
  const server = createServer(adminServerOptions, createAdminHandler({ ...state, token, apiRoutes, log }))
  limitConnections(server, adminConnectionsWithin(readOpenFilesLimit()))
  return {
    listen: async () => (await listenOn(server, { host, port, exclusive: true }, 'ADMIN_HOST')).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
