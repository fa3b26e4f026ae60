import cluster from 'node:cluster'
import type { Log } from '../../shared/log.ts'
import { handleUncaughtExceptions } from '../../shared/uncaught-exceptions.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { renderMetrics } from '../telemetry/prometheus.ts'
import { composeAdmin } from './admin.ts'
import { composeServing, type Gateway } from './serving.ts'
import { composePrimary, composeWorker } from './workers.ts'

/** Composes this process's part of the gateway: all of it, the primary process, or a worker. */
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
      handleUncaughtExceptions(log, () => metrics.telemetry.errorCaught('process'))
      return { port: address.port, adminPort }
    },
    async close() {
      await serving.close()
      await admin.close()
    },
  }
}
