import cluster from 'node:cluster'
import { guardProcess } from '../shared/guard.ts'
import type { Log } from '../shared/log.ts'
import type { Running } from '../shared/shutdown.ts'
import { renderMetrics } from './admin/prometheus.ts'
import { composeAdmin } from './compose-admin.ts'
import { composeServing } from './compose-serving.ts'
import { composePrimary, composeWorker } from './compose-workers.ts'
import type { GatewaySettings } from './config/settings.ts'

/** The ports that a gateway listens on. */
export type Listening = { readonly port: number; readonly adminPort: number }

export type Gateway = Running & {
  /** Resolves with undefined where the gateway is closed before it listens. */
  listen(): Promise<Listening | undefined>
}

/** The gateway as the settings want it: in this process alone, or this one's part of a gateway of several. */
export async function composeGateway(settings: GatewaySettings, log: Log): Promise<Gateway> {
  if (cluster.isWorker) return composeWorker(settings, log)
  return settings.workers > 1 ? composePrimary(settings, log) : composeSingle(settings, log)
}

/** The whole gateway in one process: what serves clients, and the admin listener beside it. */
async function composeSingle(settings: GatewaySettings, log: Log): Promise<Gateway> {
  const serving = await composeServing(settings, log)
  const { metrics, health } = serving
  const admin = composeAdmin(settings, log, {
    clients: serving.clients,
    readHealth: () => health.read(),
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot()]),
  })
  return {
    async listen() {
      const adminPort = await admin.listen()
      const address = await serving.listen()
      if (!address) return undefined
      guardProcess(log, () => metrics.telemetry.errorCaught('process'))
      return { port: address.port, adminPort }
    },
    async close() {
      await serving.close()
      await admin.close()
    },
  }
}
