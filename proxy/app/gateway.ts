import type { Log } from '../../shared/log.ts'
import { handleUncaughtExceptions } from '../../shared/uncaught-exceptions.ts'
import { listFilesOf } from '../config/clients/list-files.ts'
import type { GatewaySettings } from '../config/settings.ts'
import type { Names } from '../names/names.ts'
import { LiveGeo } from './addresses/live-geo.ts'
import { LiveLists } from './addresses/live-lists.ts'
import { composeAdmin, operatedAlone } from './admin.ts'
import { keepCertificate } from './listen/certificate.ts'
import { composeWebhooks } from './observe/webhooks.ts'
import { Reloader, type SettingsSource } from './reload/reloader.ts'
import { composeServing } from './serving/compose.ts'
import type { Gateway } from './serving/serving.ts'
import { composePrimary, type Kept } from './workers/primary.ts'
import { composeWorker } from './workers/worker.ts'

/**
 * Composes this process's part of the gateway: the whole gateway, the primary process, or a worker.
 *
 * @param names looks up the names of hosts
 * @param source of the settings, for reloads; undefined in a worker, which gets them from its primary process
 */
export async function composeGateway(
  settings: GatewaySettings,
  log: Log,
  source: SettingsSource | undefined,
  names: Names,
): Promise<Gateway> {
  if (!source) return composeWorker(settings, log, names)
  if (settings.workers === 1) return composeSingle(settings, log, source, names)
  return composePrimary(settings, log, { source, kept: await readKept(settings) })
}

/**
 * Reads the files that the primary process keeps a copy of. Each worker reads them itself and logs that. The primary process reads them
 * first, so that a mistake is reported only once.
 */
async function readKept(settings: GatewaySettings): Promise<Kept> {
  const silent = { info: ignoreLine, warn: ignoreLine, error: ignoreLine }
  const kept = {
    lists: new LiveLists(silent),
    geo: new LiveGeo(silent),
    certificate: keepCertificate(settings, silent),
  }
  const lists = await kept.lists.prepare(listFilesOf(settings))
  const geo = await kept.geo.prepare(settings.geoip)
  lists.commit()
  geo.commit()
  return kept
}

function ignoreLine(): void {
  // Not logged.
}

/** Composes the whole gateway in one process: the servers for clients and the admin listener. */
async function composeSingle(
  settings: GatewaySettings,
  log: Log,
  source: SettingsSource,
  names: Names,
): Promise<Gateway> {
  const webhooks = composeWebhooks(settings, log)
  const serving = await composeServing(settings, log, {
    names,
    readConfig: () => reloader.readConfig(),
    notify: webhooks?.notify,
  })
  const { telemetry } = serving.metrics
  webhooks?.observe(telemetry)
  const reloader = new Reloader({
    running: settings,
    source,
    prepare: (change) => serving.prepare(change.settings, change.tableHash),
    changed: () => admin.tableChanged(),
    notify: webhooks?.notify,
    log,
  })
  const admin = composeAdmin(settings, log, { ...operatedAlone(serving), reloader })
  const stopWatching = source.watch(() => void reloader.reload('file'))
  return {
    reload() {
      serving.reloadCertificate()
      void reloader.reload('signal')
    },
    async listen() {
      const adminPort = await admin.listen()
      const ports = await serving.listen()
      if (!ports) return undefined
      handleUncaughtExceptions(log, () => telemetry.errorCaught('process'))
      return { ...ports, adminPort }
    },
    async close() {
      stopWatching()
      await serving.close()
      await Promise.all([admin.close(), webhooks?.close()])
    },
  }
}
