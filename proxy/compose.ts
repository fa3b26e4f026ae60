import { createServer } from 'node:http'
import type { Log } from '../shared/log.ts'
import { guardProcess } from '../shared/guard.ts'
import type { Running } from '../shared/shutdown.ts'
import { createApiRoutes } from './admin/api.ts'
import { renderMetrics } from './admin/prometheus.ts'
import {
  ADMIN_CONNECTIONS_MAX,
  adminServerOptions,
  createAdminHandler,
  type AdminDeps,
} from './admin/server.ts'
import { composeServing, listenOn } from './compose-serving.ts'
import type { GatewaySettings } from './config/settings.ts'
import { version } from './version.ts'

/** The ports that a gateway listens on. */
export type Listening = { readonly port: number; readonly adminPort: number }

export type Gateway = Running & { listen(): Promise<Listening> }

/** The whole gateway in one process: what serves clients, and the admin listener beside it. */
export function composeGateway(settings: GatewaySettings, log: Log): Gateway {
  const serving = composeServing(settings, log)
  const { metrics, health } = serving
  guardProcess(log, () => metrics.telemetry.errorCaught('process'))
  const admin = composeAdmin(settings, log, {
    readHealth: () => health.read(),
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot()]),
  })
  return {
    async listen() {
      const adminPort = await admin.listen()
      const { port } = await serving.listen()
      return { port, adminPort }
    },
    async close() {
      await serving.close()
      await admin.close()
    },
  }
}

export type Admin = Running & { listen(): Promise<number> }

export function composeAdmin(
  settings: GatewaySettings,
  log: Log,
  state: Pick<AdminDeps, 'readHealth' | 'readMetrics'>,
): Admin {
  const { adminHost: host, adminPort: port, adminToken: token } = settings
  const apiRoutes = createApiRoutes({
    version,
    rules: settings.rateLimitingDisabled ? 0 : settings.rules.length,
    workers: settings.workers,
    uptimeMs: () => process.uptime() * 1000,
    readHealth: state.readHealth,
  })
  const server = createServer(adminServerOptions, createAdminHandler({ ...state, token, apiRoutes, log }))
  server.maxConnections = ADMIN_CONNECTIONS_MAX
  return {
    listen: async () => (await listenOn(server, { host, port })).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
