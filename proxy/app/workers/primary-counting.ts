import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { doInTurns } from '../../../shared/steps.ts'
import { createClientOperations, type ClientOperations } from '../../admin/client-operations.ts'
import type { TableChange } from '../../config/reload/table-change.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { ClientEntry, EntryId } from '../../limits/clients/client-entry.ts'
import { createClientTable, type ClientTable } from '../../limits/clients/client-table.ts'
import { serveClientTable, sendEntry } from '../../limits/clients/worker-entries.ts'
import { createEmbeddedLimiter } from '../../limits/store/create-limiter.ts'
import { ServedLimiter, sendReset } from '../../limits/store/workers/primary-limiter.ts'
import { policiesOf, type Policy, type Rule } from '../../policy.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { Notify } from '../../telemetry/webhooks/webhook-event.ts'
import { clientTableOptions, counterOptions } from '../counting.ts'
import { listWorkers, portTo } from './processes.ts'

type WorkerPort = ReturnType<typeof portTo>

export type PrimaryCountingOptions = {
  readonly log: Log
  readonly telemetry: Telemetry
  readonly notify: Notify | undefined
}

type Kept = { readonly counters: ReturnType<typeof createEmbeddedLimiter>; readonly clientTable: ClientTable }

/** The counters, bans and overrides of all workers, kept in the primary process. With Redis, they are in Redis instead. */
export class PrimaryCounting {
  readonly #settings: GatewaySettings
  readonly #options: PrimaryCountingOptions
  /** The state in this process; undefined with Redis, so that metrics have no empty tables. */
  readonly #kept: Kept | undefined
  readonly #served = new Set<ServedLimiter>()
  #policyByName: ReadonlyMap<string, Policy>

  constructor(settings: GatewaySettings, options: PrimaryCountingOptions) {
    const { log, telemetry } = options
    this.#settings = settings
    this.#options = options
    this.#kept =
      settings.redisUrl === undefined
        ? {
            counters: createEmbeddedLimiter(
              counterOptions(settings, { log, telemetry, onForget: sendResetToWorkers }),
            ),
            clientTable: createClientTable(
              clientTableOptions(settings, options),
              undefined,
              sendEntryToWorkers,
            ),
          }
        : undefined
    this.#policyByName = byName(settings.rules)
  }

  /**
   * Returns the operations for operators. If this process has no counters, and for facts that only workers know, these are the operations
   * of the workers.
   *
   * @param asked asks the workers
   */
  operations(asked: ClientOperations): ClientOperations {
    if (!this.#kept) return asked
    const { telemetry, log } = this.#options
    return {
      ...createClientOperations({
        ...this.#kept,
        limited: { list: () => [] },
        onReset: () => telemetry.clientReset(),
        logAddresses: this.#settings.logAddresses,
        log,
      }),
      listLimited: (policyName, limit) => asked.listLimited(policyName, limit),
      explain: (request) => asked.explain(request),
    }
  }

  /** Serves the counters to a worker. Call `begin` when the worker gets its first table, and `end` when it has exited. */
  serveCounters(port: WorkerPort): { begin(rules: readonly Rule[]): void; end(): void } {
    const counters = this.#kept?.counters
    let limiter: ServedLimiter | undefined
    return {
      begin: (rules) => {
        if (!counters) return
        limiter = new ServedLimiter({ counters, policies: policiesOf(rules), port })
        this.#served.add(limiter)
      },
      end: () => {
        limiter?.close()
        if (limiter) this.#served.delete(limiter)
      },
    }
  }

  /** Serves bans and overrides to a worker. */
  serveEntries(port: WorkerPort): void {
    if (this.#kept) serveClientTable(this.#kept.clientTable, (name) => this.#policyByName.get(name), port)
  }

  /** Makes workers count by the rules of another table from now on. @param id the id of the change */
  async prepareWorkers({ settings, revised }: TableChange, id: number): Promise<void> {
    for (const limiter of this.#served)
      await doInTurns(limiter.usePolicies(policiesOf(settings.rules), revised, id))
  }

  /** Applies other rules, and frees the state of the previous rules. */
  async useRules(rules: readonly Rule[]): Promise<void> {
    this.#policyByName = byName(rules)
    await setImmediate()
    if (!this.#kept) return
    await doInTurns(this.#kept.counters.useTable(policiesOf(rules)))
    await setImmediate()
    this.#kept.clientTable.usePolicies(rules.map(({ policy }) => policy))
  }
}

function byName(rules: readonly Rule[]): ReadonlyMap<string, Policy> {
  return new Map(rules.map(({ policy }) => [policy.name, policy]))
}

/** Called when a client was reset in this process, which has the counters. Makes the workers drop their caches of the client. */
function sendResetToWorkers(policyName: string | undefined, partitionKey: string): void {
  for (const worker of listWorkers()) sendReset(portTo(worker), policyName, partitionKey)
}

function sendEntryToWorkers(id: EntryId, entry: ClientEntry | undefined, leftMs: number): void {
  for (const worker of listWorkers()) sendEntry(portTo(worker), id, entry, leftMs)
}
