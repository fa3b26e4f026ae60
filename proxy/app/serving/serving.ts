import type { AddressInfo, ListenOptions } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { Running } from '../../../shared/shutdown.ts'
import { doInTurns } from '../../../shared/steps.ts'
import type { ClientOperations } from '../../admin/client-operations.ts'
import type { Health } from '../../admin/health.ts'
import type { ReplicaExchange } from '../../admin/replicas/exchange.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { ThrottledClients } from '../../limits/clients/throttled-clients.ts'
import type { Metrics } from '../../telemetry/metrics/metrics.ts'
import type { Tracing } from '../../telemetry/tracing/tracing.ts'
import type { Crowdsec } from '../addresses/crowdsec.ts'
import type { Counting } from '../counting.ts'
import { openPorts, type OpenPorts } from '../listen/open-ports.ts'
import type { PreparedTable } from '../reload/reloader.ts'
import type { ClientListener } from './client-listener.ts'
import { currentRules } from './current-rules.ts'
import type { TableFiles } from './table-files.ts'

/** The ports that a gateway listens on. */
export type Listening = {
  readonly port: number
  readonly adminPort: number
  /** The port for auth requests (`DECISIONS_PORT`). */
  readonly decisionsPort?: number
}

export type Gateway = Running & {
  /** Called when an operator sends SIGHUP. Reads the settings again; a worker reads only the certificate and the key. */
  reload(): void
  /** Resolves with undefined if the gateway is closed before it listens. */
  listen(): Promise<Listening | undefined>
}

/** The parts of the current table that are read outside of requests. */
export type ActiveTable = { hash: string; refusals: GatewaySettings['refusals'] }

export type ServingParts = {
  readonly settings: GatewaySettings
  readonly metrics: Metrics
  readonly health: Health
  readonly clients: ClientOperations
  readonly counters: Counting
  readonly crowdsec: Crowdsec | undefined
  readonly files: TableFiles
  readonly listener: ClientListener
  readonly replicas: ReplicaExchange | undefined
  readonly table: ActiveTable
  readonly throttledClients: ThrottledClients
  readonly tracing: Tracing | undefined
}

/** How long the start waits for the decisions of CrowdSec. An unreachable CrowdSec must not keep the gateway from serving. */
const DECISIONS_AT_START_MS = 2_000

/** Everything that serves clients in one process: the whole gateway except the admin listener. */
export class Serving implements Running {
  readonly #parts: ServingParts
  #opening: Promise<OpenPorts> | undefined

  constructor(parts: ServingParts) {
    this.#parts = parts
  }

  get metrics(): Metrics {
    return this.#parts.metrics
  }

  get health(): Health {
    return this.#parts.health
  }

  get clients(): ClientOperations {
    return this.#parts.clients
  }

  /**
   * Builds everything that serves requests under another table, a few milliseconds in each turn of the event loop. Nothing changes before
   * `commit`, which cannot fail and is atomic for requests. It then frees the state of the old table.
   *
   * @param tableHash the result of `hashTable`
   */
  async prepare(next: GatewaySettings, tableHash: string): Promise<PreparedTable> {
    const { files, listener, table } = this.#parts
    const prepared = await files.prepare(next)
    const useTable = await doInTurns(listener.prepare(next, prepared.read))
    return {
      commit: async () => {
        useTable()
        prepared.commit()
        table.refusals = next.refusals
        table.hash = tableHash
        await setImmediate()
        await this.#freeOldTable(next)
      },
      abort: () => prepared.abort(),
    }
  }

  /** Frees the state of rules and routes that are no longer in the table. */
  async #freeOldTable(next: GatewaySettings): Promise<void> {
    const { counters, metrics, throttledClients } = this.#parts
    const rules = currentRules(next)
    await counters.useRules(rules)
    const policies = rules.map(({ policy }) => policy)
    await doInTurns(metrics.telemetry.tableChanged(policies, next.routes?.map(({ name }) => name) ?? []))
    await setImmediate()
    throttledClients.keepPolicies(new Set(policies.map(({ name }) => name)))
  }

  /** Reads the certificate and the key again, if there are any. */
  reloadCertificate(): void {
    this.#parts.listener.reloadCertificate()
  }

  /** Opens the ports for clients and decisions. Resolves with undefined if this was closed before; rejects if a port cannot be opened. */
  async listen(
    options: ListenOptions = {},
  ): Promise<(Omit<Listening, 'adminPort'> & Pick<AddressInfo, 'address'>) | undefined> {
    const { settings, counters, crowdsec, files, health, listener } = this.#parts
    await Promise.all([
      counters.ready(),
      listener.ready(),
      files.ready(),
      crowdsec?.ready(DECISIONS_AT_START_MS),
    ])
    if (health.read().status === 'stopping') return undefined
    this.#opening = openPorts(settings, listener, options)
    const ports = await this.#opening
    if (health.read().status === 'stopping') return undefined
    health.markReady()
    return ports
  }

  async close(): Promise<void> {
    const { counters, crowdsec, files, health, listener, replicas, tracing } = this.#parts
    health.beginStopping()
    // If the server is about to listen, wait: otherwise it would listen after it was closed.
    await this.#opening?.catch(() => undefined)
    await listener.close()
    // The settlements of requests that have just ended are sent in this turn of the event loop.
    await setImmediate()
    files.close()
    crowdsec?.close()
    replicas?.close()
    await Promise.all([counters.close(), tracing?.close()])
  }
}
