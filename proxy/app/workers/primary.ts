import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { doInTurns } from '../../../shared/steps.ts'
import { handleUncaughtExceptions } from '../../../shared/uncaught-exceptions.ts'
import { createClientOperations, type ClientOperations } from '../../admin/client-operations.ts'
import { combineHealth, createHealth } from '../../admin/health.ts'
import { createWorkersOperations } from '../../admin/worker-clients.ts'
import { createWorkerReports } from '../../admin/worker-reports.ts'
import type { ClientEntry, EntryId } from '../../limits/clients/client-entry.ts'
import { DecisionBroadcast } from '../../limits/clients/crowdsec/worker-decisions.ts'
import { createClientTable, type ClientTable } from '../../limits/clients/client-table.ts'
import { serveClientTable, tellEntry } from '../../limits/clients/worker-entries.ts'
import { listFilesOf } from '../../config/clients/list-files.ts'
import type { TableChange } from '../../config/reload/table-change.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { CounterAdmin } from '../../limits/store/counter-admin.ts'
import { createEmbeddedLimiter } from '../../limits/store/create-limiter.ts'
import { ServedLimiter, tellReset } from '../../limits/store/workers/primary-limiter.ts'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'
import { policiesOf, type Policy, type Rule } from '../../policy.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import { renderMetrics, watchProcess } from '../../telemetry/metrics/prometheus.ts'
import { composeCrowdsec } from '../addresses/crowdsec.ts'
import type { LiveGeo } from '../addresses/live-geo.ts'
import type { LiveLists } from '../addresses/live-lists.ts'
import { composeAdmin } from '../admin.ts'
import { clientTableOptions, counterOptions } from '../counting.ts'
import { composeWebhooks, hearWorkers } from '../observe/webhooks.ts'
import { createReloader, type PreparedTable, type SettingsSource } from '../reload/reloader.ts'
import { createWorkerTables, type WorkerTables } from '../reload/worker-tables.ts'
import { rulesInForce } from '../serving/rules-in-force.ts'
import type { Gateway } from '../serving/serving.ts'
import { version } from '../observe/version.ts'
import { serveKeptFiles, type KeptFile } from './kept-files.ts'
import { fileOfList } from './kept-lists.ts'
import { createWorkerProcesses, listWorkers, portTo } from './processes.ts'

/** How long the primary process waits for a worker's figures. */
const REPORT_TIMEOUT_MS = 1_000

/** What workers read themselves, kept for those that cannot. */
export type Kept = { readonly lists: LiveLists; readonly geo: LiveGeo }

/**
 * The primary process of a gateway with several workers. It serves no clients: it starts the workers, restarts those
 * that exit, serves the admin listener for all of them, and without Redis keeps the counters for all of them.
 *
 * @param kept the lists and databases of the settings, which this process has read
 */
export function composePrimary(
  settings: GatewaySettings,
  log: Log,
  { source, kept }: { readonly source: SettingsSource; readonly kept: Kept },
): Gateway {
  const metrics = createMetrics({
    policies: [],
    limitsEnabled: !settings.rateLimitingDisabled,
    version,
    readNode: watchProcess('sluice_'),
    readConfig: () => reloader.readConfig(),
  })
  const { telemetry } = metrics
  const webhooks = composeWebhooks(settings, log)
  webhooks?.observe(telemetry)
  const hear = webhooks && hearWorkers(webhooks.notify)
  const counters =
    settings.redisUrl === undefined
      ? createEmbeddedLimiter(counterOptions(settings, log, telemetry, tellWorkers))
      : undefined
  const clientTable = createClientTable(
    clientTableOptions(settings, log, telemetry, webhooks?.notify),
    undefined,
    tellWorkersOfEntry,
  )
  const crowdsec =
    settings.crowdsec &&
    composeCrowdsec(settings.crowdsec, {
      telemetry,
      log,
      changed: (change) => decisions?.changed(change),
    })
  const decisions =
    crowdsec && new DecisionBroadcast(crowdsec.table, () => listWorkers().map((worker) => portTo(worker)))
  const reports = createWorkerReports(REPORT_TIMEOUT_MS)
  const own = createHealth({ storeState: () => 'unknown', upstreamState: () => 'unknown' })
  const isStopping = (): boolean => own.read().status === 'stopping'
  const asked = createWorkersOperations(reports.askClients)
  const onReset = (): void => telemetry.clientReset()
  const tables = createWorkerTables()
  const served = new Set<ServedLimiter>()
  const reloader = createReloader({
    running: settings,
    source,
    prepare: prepareAll({ tables, served, kept, useRules }),
    changed: () => admin.tableChanged(),
    notify: webhooks?.notify,
    log,
  })
  let policyByName = byName(settings.rules)
  async function useRules(rules: readonly Rule[]): Promise<void> {
    policyByName = byName(rules)
    await setImmediate()
    if (counters) await doInTurns(counters.useTable(policiesOf(rules)))
    await setImmediate()
    const policies = rules.map(({ policy }) => policy)
    clientTable.usePolicies(policies)
    // Requests take routes in the workers only.
    await doInTurns(telemetry.tableChanged(policies, []))
  }
  const admin = composeAdmin(settings, log, {
    clients: counters
      ? operateHere({ counters, clientTable, asked, onReset, logAddresses: settings.logAddresses, log })
      : asked,
    reloader,
    readActivities: () => reports.readActivities(),
    readHealth: async () => combineHealth(own.read().status, await reports.readHealth()),
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot(), ...(await reports.readMetrics())]),
  })
  const workers = createWorkerProcesses({
    settings,
    gatewayId: randomUUID(),
    isServing: () => own.read().status === 'ready',
    onStart(worker) {
      reports.add(worker)
      hear?.(worker)
      decisions?.add(portTo(worker))
      let limiter: ServedLimiter | undefined
      tables.add(worker, () => {
        const inForce = reloader.current()
        if (counters) {
          limiter = new ServedLimiter({ counters, policies: policiesOf(inForce.rules), port: portTo(worker) })
          served.add(limiter)
        }
        return inForce
      })
      serveKept(kept, portTo(worker))
      if (counters) serveClientTable(clientTable, (name) => policyByName.get(name), portTo(worker))
      return () => {
        limiter?.close()
        if (limiter) served.delete(limiter)
      }
    },
    log,
  })

  const stopWatching = source.watch(() => void reloader.reload('file'))

  return {
    reload() {
      // The workers have the certificate.
      if (settings.tlsCertFile !== undefined)
        for (const worker of listWorkers()) worker.process.kill('SIGHUP')
      void reloader.reload('signal')
    },
    async listen() {
      const adminPort = await admin.listen()
      if (isStopping()) return undefined
      const ports = await workers.start().catch((error: unknown) => {
        // Workers that were told to stop do not listen any more.
        if (isStopping()) return undefined
        throw error
      })
      // It may also have begun to stop as the last worker was about to listen.
      if (!ports || isStopping()) return undefined
      own.markReady()
      // A worker that exited while others were still starting has not been restarted yet.
      workers.restartDead()
      handleUncaughtExceptions(log, () => telemetry.errorCaught('process'))
      return { ...ports, adminPort }
    },
    async close() {
      stopWatching()
      own.beginStopping()
      crowdsec?.close()
      kept.lists.close()
      kept.geo.close()
      await workers.stop()
      await Promise.all([admin.close(), webhooks?.close()])
    },
  }
}

/** Operations for operators if this process has the counters. Facts that only workers know are asked of them. */
function operateHere(options: {
  readonly counters: CounterAdmin
  readonly clientTable: ClientTable
  readonly asked: ClientOperations
  readonly onReset: () => void
  readonly logAddresses: boolean
  readonly log: Log
}): ClientOperations {
  const { asked, ...own } = options
  return {
    ...createClientOperations({ ...own, limited: { list: () => [] } }),
    listLimited: (policyName, limit) => asked.listLimited(policyName, limit),
    explain: (request) => asked.explain(request),
  }
}

/** All workers take a new table, or none; then this process frees what it has no use for any more. */
function prepareAll(options: {
  readonly tables: WorkerTables
  readonly served: ReadonlySet<ServedLimiter>
  readonly kept: Kept
  readonly useRules: (rules: readonly Rule[]) => Promise<void>
}): (change: TableChange) => Promise<PreparedTable> {
  const { tables, served, kept, useRules } = options
  let revision = 0
  return async (change) => {
    const id = ++revision
    const { rules } = change.settings
    const lists = await kept.lists.prepare(listFilesOf(change.settings))
    const geo = await kept.geo.prepare(change.settings.geoip)
    const prepared = await tables.prepare(change, id)
    return {
      ...prepared,
      async commit() {
        for (const each of served) await doInTurns(each.usePolicies(policiesOf(rules), change.revised, id))
        await prepared.commit()
        lists.commit()
        geo.commit()
        await useRules(rulesInForce(change.settings))
      },
    }
  }
}

function serveKept({ lists, geo }: Kept, port: LimiterPort): void {
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
}

function byName(rules: readonly Rule[]): ReadonlyMap<string, Policy> {
  return new Map(rules.map(({ policy }) => [policy.name, policy]))
}

/** A client was reset in this process, which has the counters: tells the workers to drop their caches of it. */
function tellWorkers(policyName: string | undefined, partitionKey: string): void {
  for (const worker of listWorkers()) tellReset(portTo(worker), policyName, partitionKey)
}

function tellWorkersOfEntry(id: EntryId, entry: ClientEntry | undefined, leftMs: number): void {
  for (const worker of listWorkers()) tellEntry(portTo(worker), id, entry, leftMs)
}
