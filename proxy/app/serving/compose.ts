import { randomUUID } from 'node:crypto'
import type { Log } from '../../../shared/log.ts'
import { createClientOperations, type ClientOperations } from '../../admin/client-operations.ts'
import { createHealth } from '../../admin/health.ts'
import { hashTable } from '../../config/reload/table-hash.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { createThrottledClients, type ThrottledClients } from '../../limits/clients/throttled-clients.ts'
import type { Names } from '../../names/names.ts'
import { createMetrics, type ConfigState, type Metrics } from '../../telemetry/metrics/metrics.ts'
import { watchProcess, type MetricSnapshot } from '../../telemetry/metrics/prometheus.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { Notify } from '../../telemetry/webhooks/webhook-event.ts'
import { composeCrowdsec, type Crowdsec } from '../addresses/crowdsec.ts'
import { composeCounting, now, type Counting } from '../counting.ts'
import { explainHead } from '../explain/explain-head.ts'
import { readCertificate } from '../listen/certificate.ts'
import { composeReplicaExchange } from '../observe/replicas.ts'
import { composeTracing } from '../observe/tracing.ts'
import { version } from '../observe/version.ts'
import { composeNames } from '../upstreams/names.ts'
import type { AskForKept } from '../workers/kept-files.ts'
import { composeClientListener } from './client-listener.ts'
import { currentRules } from './current-rules.ts'
import { Serving, type ServingParts, type ActiveTable } from './serving.ts'
import { TableFiles } from './table-files.ts'

/** Parts that the caller provides: a worker has them from the primary process, and `sluice/embedded` from a test. */
export type ProvidedParts = {
  /**
   * Makes counters that are neither in Redis nor in this process: with several workers and no Redis, the primary process counts for all
   * workers.
   */
  readonly count?: ((telemetry: Telemetry, onForget: ThrottledClients['forget']) => Counting) | undefined
  /** Looks up the names of hosts. Created if left out. */
  readonly names?: Names | undefined
  /** Set in the process that reads the settings. */
  readonly readConfig?: () => ConfigState
  /** The id of a worker's gateway among the replicas. */
  readonly gatewayId?: string | undefined
  /** Whether this process logs that the certificate has expired. Default: true. Only one of several workers logs it. */
  readonly warnsOfCertificate?: boolean
  /** Reads Node's metrics of this process. Default: a watch that lasts until the process exits. */
  readonly readNode?: () => Promise<MetricSnapshot>
  /** Monotonic milliseconds for counters in memory. Default: the clock of this process. */
  readonly now?: () => number
  /** The copy of CrowdSec's decisions in a worker. The primary process reads the decisions. */
  readonly crowdsec?: Crowdsec | undefined
  /** Gets the primary process's copy of a list of addresses, a database or the certificate, for a worker that cannot use the file. */
  readonly askForKept?: AskForKept
  /** Sends events about bans and circuit breakers to webhooks. */
  readonly notify?: Notify | undefined
}

/** Maximum number of clients over a limit that operators can list: at most two megabytes. */
const THROTTLED_CLIENTS = 10_000

/** Composes everything that serves clients in this process. */
export async function composeServing(
  settings: GatewaySettings,
  log: Log,
  provided: ProvidedParts = {},
): Promise<Serving> {
  const metrics = composeMetrics(settings, provided)
  const { telemetry } = metrics
  const crowdsec =
    settings.crowdsec && (provided.crowdsec ?? composeCrowdsec(settings.crowdsec, { telemetry, log }))
  if (crowdsec) telemetry.observeTable('crowdsec', () => crowdsec.table.readUse())
  const { askForKept } = provided
  const files = new TableFiles({ crowdsec, askForKept, telemetry, log, now })
  const read = await files.readFirst(settings)
  const certificate = await readCertificate(settings, { askForKept, log })
  const tracing = await composeTracing(settings, telemetry, log)
  const throttledClients = createThrottledClients(THROTTLED_CLIENTS, provided.now ?? now)
  telemetry.observeTable('limited', () => throttledClients.readUse())
  const onForget: ThrottledClients['forget'] = (policyName, partitionKey) =>
    throttledClients.forget(policyName, partitionKey)
  const counters =
    provided.count?.(telemetry, onForget) ??
    (await composeCounting(settings, { log, telemetry, onForget, notify: provided.notify }, provided.now))
  const { limiter, wallNow, clientTable } = counters
  // The client's next request shows whether it exceeds the limit that an operator has just set.
  clientTable.entries.onOverride = onForget
  const health = createHealth({
    storeState: () => counters.storeState(),
    unavailableStoreNodes: counters.unavailableNodes,
    upstreamState: () => metrics.upstreamState(),
    readServers: () => listener.readServers(),
  })
  const listener = composeClientListener(settings, {
    ...read,
    limiter,
    wallNow,
    clientTable,
    throttledClients,
    telemetry,
    tracing,
    log,
    names: provided.names ?? composeNames(),
    certificate,
    warnsOfCertificate: provided.warnsOfCertificate ?? true,
    isStopping: () => health.read().status === 'stopping',
  })
  const table = { hash: hashTable(settings), refusals: settings.refusals }
  const replicas = composeReplicaExchange({
    counters,
    throttledClients,
    log,
    gateway: provided.gatewayId ?? randomUUID(),
    readTableHash: () => table.hash,
    readHealth: () => health.read(),
  })
  const parts = { settings, metrics, health, counters, crowdsec, files, listener, replicas, table, tracing }
  const clients = composeOperations({ ...parts, throttledClients, log })
  return new Serving({ ...parts, throttledClients, clients })
}

function composeMetrics(settings: GatewaySettings, { readConfig, readNode }: ProvidedParts): Metrics {
  return createMetrics({
    policies: currentRules(settings).map(({ policy }) => policy),
    limitsEnabled: !settings.rateLimitingDisabled,
    version,
    readNode: readNode ?? watchProcess('sluice_'),
    ...(readConfig && { readConfig }),
  })
}

/** Composes the operations for operators on clients of this process. */
function composeOperations(
  parts: Omit<ServingParts, 'clients'> & { readonly table: Readonly<ActiveTable>; readonly log: Log },
): ClientOperations {
  const { settings, metrics, counters, files, listener, replicas, table, throttledClients, log } = parts
  const { clientTable } = counters
  return {
    ...createClientOperations({
      counters: counters.operations,
      clientTable,
      limited: throttledClients,
      replicas,
      onReset: () => metrics.telemetry.clientReset(),
      logAddresses: settings.logAddresses,
      log,
    }),
    explain(asked) {
      const { hasPlace } = listener
      const runTime = { entries: clientTable.entries, refusals: table.refusals, hasPlace }
      const tokens = files.tokens?.uncounted
      return explainHead(asked, settings, { table: listener.readTable(), tokens, runTime })
    },
  }
}
