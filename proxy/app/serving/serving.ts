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
  /** An operator has asked for it, by a signal: reads the settings again, in a worker nothing but certificate and key. */
  reload(): void
  /** Resolves with undefined if the gateway is closed before it listens. */
  listen(): Promise<Listening | undefined>
}

/** The parts of the current table that are read outside the way of a request. */
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

/** Time that the start waits for the decisions of CrowdSec. A CrowdSec that is away must not keep the gateway from serving. */
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
   * Makes all that serves requests of another table, a few milliseconds in each turn. Nothing changes before
   * `use`, which cannot fail and is atomic for requests: it frees the state of the old table.
   *
   * @param tableHash of `hashTable`
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

  /** Frees what only the rules and routes before had. */
  async #freeOldTable(next: GatewaySettings): Promise<void> {
    const { counters, metrics, throttledClients } = this.#parts
    const rules = currentRules(next)
    await counters.useRules(rules)
    const policies = rules.map(({ policy }) => policy)
    await doInTurns(metrics.telemetry.tableChanged(policies, next.routes?.map(({ name }) => name) ?? []))
    await setImmediate()
    throttledClients.keepPolicies(new Set(policies.map(({ name }) => name)))
  }

  /** Reads certificate and key again, where there are any. */
  reloadCertificate(): void {
    this.#parts.listener.reloadCertificate()
  }

  /** Opens the ports for clients and decisions. Resolves with undefined if it was closed before; rejects if one cannot be opened. */
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
    // A server that is about to listen would do so after it was closed.
    await this.#opening?.catch(() => undefined)
    await listener.close()
    files.close()
    crowdsec?.close()
    replicas?.close()
    await Promise.all([counters.close(), tracing?.close()])
  }
}
