import type { Worker } from 'node:cluster'
import { randomUUID } from 'node:crypto'
import type { Log } from '../../../shared/log.ts'
import { doInTurns } from '../../../shared/steps.ts'
import { handleUncaughtExceptions } from '../../../shared/uncaught-exceptions.ts'
import { combineHealth, createHealth, type Health } from '../../admin/health.ts'
import { createWorkersOperations } from '../../admin/worker-clients.ts'
import { WorkerReports } from '../../admin/worker-reports.ts'
import { listFilesOf } from '../../config/clients/list-files.ts'
import type { TableChange } from '../../config/reload/table-change.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { DecisionBroadcast } from '../../limits/clients/crowdsec/worker-decisions.ts'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'
import { createMetrics, type Metrics } from '../../telemetry/metrics/metrics.ts'
import { renderMetrics, watchProcess } from '../../telemetry/metrics/prometheus.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { composeCrowdsec, type Crowdsec } from '../addresses/crowdsec.ts'
import type { LiveGeo } from '../addresses/live-geo.ts'
import type { LiveLists } from '../addresses/live-lists.ts'
import { composeAdmin } from '../admin.ts'
import type { KeptCertificate } from '../listen/certificate.ts'
import { composeWebhooks, receiveWorkerEvents } from '../observe/webhooks.ts'
import { version } from '../observe/version.ts'
import { PrimaryTables } from '../reload/primary-tables.ts'
import { Reloader, type PreparedTable, type SettingsSource } from '../reload/reloader.ts'
import { currentRules } from '../serving/current-rules.ts'
import type { Gateway, Listening } from '../serving/serving.ts'
import { serveKeptFiles, type KeptFile } from './kept-files.ts'
import { fileOfList } from './kept-lists.ts'
import { PrimaryCounting } from './primary-counting.ts'
import { listWorkers, portTo, WorkerProcesses } from './processes.ts'

/** How long the primary process waits for a worker's report. */
const REPORT_TIMEOUT_MS = 1_000

/** Copies of files that workers read themselves, kept for workers that cannot use the file. */
export type Kept = {
  readonly lists: LiveLists
  readonly geo: LiveGeo
  /** Undefined without HTTPS. */
  readonly certificate: KeptCertificate | undefined
}

/**
 * Composes the primary process of a gateway with several workers. It serves no clients. It starts the workers, restarts workers that exit,
 * serves the admin listener for all of them, and, without Redis, keeps their counters.
 *
 * @param kept the files of the settings, which this process has read
 */
export function composePrimary(
  settings: GatewaySettings,
  log: Log,
  { source, kept }: { readonly source: SettingsSource; readonly kept: Kept },
): Gateway {
  const metrics = createPrimaryMetrics(settings, () => reloader.readConfig())
  const { telemetry } = metrics
  const webhooks = composeWebhooks(settings, log)
  webhooks?.observe(telemetry)
  const notify = webhooks?.notify
  const counting = new PrimaryCounting(settings, { log, telemetry, notify })
  const { crowdsec, decisions } = composeDecisionBroadcast(settings, telemetry, log)
  const reports = new WorkerReports(REPORT_TIMEOUT_MS)
  const health = createHealth({ storeState: () => 'unknown', upstreamState: () => 'unknown' })
  const tables = new PrimaryTables()
  const reloader = new Reloader({
    running: settings,
    source,
    notify,
    log,
    prepare: prepareAll({ tables, counting, kept, telemetry }),
    changed: () => admin.tableChanged(),
  })
  const admin = composeAdmin(settings, log, {
    clients: counting.operations(createWorkersOperations(reports.askClients)),
    reloader,
    readActivities: () => reports.readActivities(),
    readHealth: async () => combineHealth(health.read().status, await reports.readHealth()),
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot(), ...(await reports.readMetrics())]),
  })
  const receiveEvents = notify && receiveWorkerEvents(notify, () => health.read().status === 'stopping')
  const workers = new WorkerProcesses({
    settings,
    gatewayId: randomUUID(),
    isServing: () => health.read().status === 'ready',
    onStart(worker) {
      receiveEvents?.(worker)
      return serveWorker(worker, { reports, decisions, tables, reloader, kept, counting })
    },
    log,
  })
  const stopWatching = source.watch(() => void reloader.reload('file'))
  return new Primary({
    admin,
    crowdsec,
    health,
    kept,
    log,
    reloader,
    stopWatching,
    tables,
    telemetry,
    workers,
    closeWebhooks: () => webhooks?.close(),
  })
}

type PrimaryParts = {
  readonly admin: ReturnType<typeof composeAdmin>
  readonly crowdsec: Crowdsec | undefined
  readonly health: Health
  readonly kept: Kept
  readonly log: Log
  readonly reloader: Reloader
  readonly stopWatching: () => void
  readonly tables: PrimaryTables
  readonly telemetry: Telemetry
  readonly workers: WorkerProcesses
  readonly closeWebhooks: () => Promise<void> | undefined
}

class Primary implements Gateway {
  readonly #parts: PrimaryParts

  constructor(parts: PrimaryParts) {
    this.#parts = parts
  }

  #isStopping(): boolean {
    return this.#parts.health.read().status === 'stopping'
  }

  reload(): void {
    void this.#reloadCertificate()
    void this.#parts.reloader.reload('signal')
  }

  /** Reloads the copy first: a worker that is restarted must not get an older certificate than the others have. */
  async #reloadCertificate(): Promise<void> {
    const { kept, tables } = this.#parts
    if (!kept.certificate) return
    await kept.certificate.reload()
    for (const worker of tables.started) worker.process.kill('SIGHUP')
  }

  async listen(): Promise<Listening | undefined> {
    const { admin, health, log, telemetry, workers } = this.#parts
    const adminPort = await admin.listen()
    if (this.#isStopping()) return undefined
    const ports = await workers.start().catch((error: unknown) => {
      // Workers that were told to stop no longer listen.
      if (this.#isStopping()) return undefined
      throw error
    })
    // The gateway may have begun to stop while the last worker was about to listen.
    if (!ports || this.#isStopping()) return undefined
    health.markReady()
    // A worker that exited while others were still starting has not been restarted yet.
    workers.restartDead()
    handleUncaughtExceptions(log, () => telemetry.errorCaught('process'))
    return { ...ports, adminPort }
  }

  async close(): Promise<void> {
    const { admin, crowdsec, health, kept, stopWatching, workers, closeWebhooks } = this.#parts
    stopWatching()
    health.beginStopping()
    crowdsec?.close()
    kept.lists.close()
    kept.geo.close()
    kept.certificate?.close()
    await workers.stop()
    await Promise.all([admin.close(), closeWebhooks()])
  }
}

/** Creates the metrics of the primary process, which serves no requests. The workers report policies and routes. */
function createPrimaryMetrics(settings: GatewaySettings, readConfig: Reloader['readConfig']): Metrics {
  return createMetrics({
    policies: [],
    limitsEnabled: !settings.rateLimitingDisabled,
    version,
    readNode: watchProcess('sluice_'),
    readConfig,
  })
}

/** Composes the decisions of CrowdSec, which this process reads and sends to the workers. */
function composeDecisionBroadcast(
  settings: GatewaySettings,
  telemetry: Telemetry,
  log: Log,
): { readonly crowdsec: Crowdsec | undefined; readonly decisions: DecisionBroadcast | undefined } {
  const crowdsec =
    settings.crowdsec &&
    composeCrowdsec(settings.crowdsec, {
      telemetry,
      log,
      changed: (change) => decisions?.changed(change),
    })
  const decisions =
    crowdsec && new DecisionBroadcast(crowdsec.table, () => listWorkers().map((worker) => portTo(worker)))
  return { crowdsec, decisions }
}

/** Serves a worker that has been forked. Returns a function to call when the worker has exited. */
function serveWorker(
  worker: Worker,
  parts: {
    readonly reports: WorkerReports
    readonly decisions: DecisionBroadcast | undefined
    readonly tables: PrimaryTables
    readonly reloader: Reloader
    readonly kept: Kept
    readonly counting: PrimaryCounting
  },
): () => void {
  const { reports, decisions, tables, reloader, kept, counting } = parts
  const port = portTo(worker)
  reports.add(worker)
  decisions?.add(port)
  const counters = counting.serveCounters(port)
  tables.add(worker, () => {
    const active = reloader.current()
    counters.begin(active.rules)
    return active
  })
  serveKept(kept, port)
  counting.serveEntries(port)
  return () => counters.end()
}

/**
 * Prepares a new table in all workers. Either all workers apply it or none. Afterwards, frees the state that this process no longer needs.
 */
function prepareAll(options: {
  readonly tables: PrimaryTables
  readonly counting: PrimaryCounting
  readonly kept: Kept
  readonly telemetry: Telemetry
}): (change: TableChange) => Promise<PreparedTable> {
  const { tables, counting, kept, telemetry } = options
  let revision = 0
  return async (change) => {
    const id = ++revision
    const lists = await kept.lists.prepare(listFilesOf(change.settings))
    const geo = await kept.geo.prepare(change.settings.geoip)
    const prepared = await tables.prepare(change, id)
    return {
      ...prepared,
      async commit() {
        await counting.prepareWorkers(change, id)
        await prepared.commit()
        lists.commit()
        geo.commit()
        const rules = currentRules(change.settings)
        await counting.useRules(rules)
        // Routes have metrics only in the workers, which serve the requests.
        const policies = rules.map(({ policy }) => policy)
        await doInTurns(telemetry.tableChanged(policies, []))
      },
    }
  }
}

function serveKept({ lists, geo, certificate }: Kept, port: LimiterPort): void {
  const readList = (location: string): KeptFile | undefined => {
    const list = lists.readKept(location)
    return list && fileOfList(list)
  }
  const readGeo = (location: string): KeptFile | undefined => {
    const bytes = geo.readKept(location)
    return bytes && { columns: [bytes] }
  }
  serveKeptFiles('list', readList, port)
  serveKeptFiles('geoip', readGeo, port)
  const readPair = (location: string): KeptFile | undefined => {
    const pair = certificate?.readKept(location)
    return pair && { columns: [pair.cert, pair.key] }
  }
  serveKeptFiles('tls', readPair, port)
}
