import type { Log } from '../../shared/log.ts'
import {
  idOf,
  kindOf,
  loggedClient,
  partitionKeyOf,
  policiesOfEntry,
  type ClientEntry,
  type EntryId,
} from '../limits/clients/client-entry.ts'
import type { ClientTable, EntryOperations } from '../limits/clients/client-table.ts'
import type { ThrottledClient, ThrottledClients } from '../limits/clients/throttled-clients.ts'
import type { CounterAdmin, CounterState, ResetOutcome } from '../limits/store/counter-admin.ts'
import type { Explanation } from '../limits/explain/explain.ts'
import type { Charge } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import { planKeyName } from '../limits/plans/plan-key-name.ts'
import type { PlanOwner, PlanStore } from '../limits/plans/plan-store.ts'
import type { ReplicaExchange } from './replicas/exchange.ts'
import type { Replicas } from './replicas/report.ts'

/** The state of a client under a policy. */
export type ClientState = CounterState & {
  /** The quota of the client, which an override may set. */
  readonly quota: number
  readonly bannedForMs?: number
  /** How long an override that was set at run time still applies. */
  readonly overriddenForMs?: number
  /** A name that an operator has given to the client. */
  readonly label?: string
  /** The plan that was set for the client, if the rule has this plan. */
  readonly plan?: string
}

/** Operations on clients for an operator, independent of the kind of gateway. No operation rejects. */
export type ClientOperations = {
  /** Reads the states in the order of the charges. Counts nothing. */
  inspect(charges: readonly Charge[]): Promise<readonly ClientState[]>
  /** Bans and overrides. */
  readonly entries: EntryOperations
  reset(charges: readonly Charge[]): Promise<ResetOutcome>
  /** Plans that were set for clients. */
  readonly plans: PlanStore
  /** Lists the limited clients of this gateway, in the order of `byRefusals`. */
  listLimited(policyName: string | undefined, limit: number): Promise<readonly ThrottledClient[]>
  /** Reads the reports of all replicas; undefined without Redis, or if Redis does not answer. */
  readReplicas(): Promise<Replicas | undefined>
  /**
   * Explains what the gateway would do with a request now, up to its counters. Resolves to undefined if no process answers. Counts
   * nothing.
   */
  explain(asked: AskedHead): Promise<Explanation | undefined>
}

/** A request head with one character per byte, the valid address of its peer, and optionally a body. */
export type AskedHead = { readonly head: string; readonly ip: string; readonly body?: string | undefined }

/** Creates the operations in a process that has counters or uses Redis. Each reset is logged and counted in a metric. */
export function createClientOperations(options: {
  readonly counters: Pick<CounterAdmin, 'inspect' | 'reset' | 'plans'>
  readonly clientTable: Pick<ClientTable, 'entries' | 'operations' | 'readPolicies'>
  readonly limited: Pick<ThrottledClients, 'list'>
  readonly replicas?: Pick<ReplicaExchange, 'read'> | undefined
  readonly onReset: () => void
  /** Whether log lines may contain an address, or a hash of a value that may be an address. */
  readonly logAddresses: boolean
  readonly log: Log
}): Omit<ClientOperations, 'explain'> {
  const { counters, clientTable, limited, replicas, onReset, logAddresses, log } = options
  const clientOf = (partitionKey: string, policies: readonly Policy[]): LoggedClient => ({
    client: loggedClient(partitionKey, logAddresses, policies),
  })
  const clientOfEntry = (id: EntryId): LoggedClient =>
    clientOf(partitionKeyOf(id), policiesOfEntry(id, clientTable.readPolicies()))
  const clientOfPlan = ({ partitionKey, keyName }: PlanOwner): LoggedClient =>
    clientOf(
      partitionKey,
      clientTable.readPolicies().filter((policy) => planKeyName(policy) === keyName),
    )
  const { entries, operations } = clientTable
  return {
    async inspect(charges) {
      const states = await counters.inspect(entries.withOverrides(charges))
      return states.map((state, at) => {
        const charge = charges[at]
        const { quota, plan } = state.policy
        return {
          ...state,
          quota,
          ...(plan !== undefined && { plan }),
          ...(charge && entries.describe(charge)),
        }
      })
    },
    entries: loggedEntries(operations, clientOfEntry, log),
    plans: loggedPlans(counters.plans, clientOfPlan, log),
    async reset(charges) {
      const outcome = await counters.reset(charges)
      const [first] = charges
      const policies = new Set(charges.map(({ policy }) => policy.name))
      const what = first && policies.size === 1 ? { policy: first.policy.name } : { policies: policies.size }
      // All charges belong to one client. Only rules that count by different parts have different keys for it.
      const client = first && clientOf(first.partitionKey, [first.policy])
      log.info({ ...client, ...what, outcome }, 'client reset by an operator')
      if (outcome === 'done') onReset()
      return outcome
    },
    listLimited(policyName, limit) {
      return Promise.resolve(withLabels(limited.list(policyName, limit), entries))
    },
    readReplicas: () => replicas?.read() ?? Promise.resolve(undefined),
  }
}

type LoggedClient = { readonly client: string | undefined }

function loggedEntries(
  operations: EntryOperations,
  clientOfEntry: (id: EntryId) => LoggedClient,
  log: Log,
): EntryOperations {
  return {
    list: (kind) => operations.list(kind),
    async put(entry, forMs) {
      const outcome = await operations.put(entry, forMs)
      log.info(
        { ...clientOfEntry(idOf(entry)), ...fieldsOf(entry), forSeconds: forMs / 1000, outcome },
        `${setMessages[entry.kind]} by an operator`,
      )
      return outcome
    },
    async remove(id) {
      const outcome = await operations.remove(id)
      if (outcome !== 'absent')
        log.info({ ...clientOfEntry(id), outcome }, `${removed[kindOf(id)]} by an operator`)
      return outcome
    },
  }
}

function loggedPlans(
  plans: PlanStore,
  clientOfPlan: (owner: PlanOwner) => LoggedClient,
  log: Log,
): PlanStore {
  return {
    get: (owner) => plans.get(owner),
    list: (limit) => plans.list(limit),
    async set(owner, plan) {
      const outcome = await plans.set(owner, plan)
      if (outcome !== 'absent')
        log.info(
          { ...clientOfPlan(owner), keyedBy: owner.keyName, plan, outcome },
          `plan of a client ${plan === undefined ? 'removed' : 'set'} by an operator`,
        )
      return outcome
    },
  }
}

/** Adds the labels that operators have set at run time. They override the labels of the table of limits. */
export function withLabels(
  clients: readonly ThrottledClient[],
  entries: ClientTable['entries'],
): ThrottledClient[] {
  return clients.map((client) => {
    const label = entries.labelOf(client.policy, client.partitionKey)
    return label === undefined ? client : { ...client, label }
  })
}

const setMessages = { ban: 'client banned', override: 'limit of a client set' } as const
const removed = { ban: 'ban lifted', override: 'limit of a client removed' } as const

/** The fields of an entry for the log. */
function fieldsOf(entry: ClientEntry): object {
  return entry.kind === 'ban'
    ? { policy: entry.policy, reason: entry.reason }
    : { policy: entry.policy, requests: entry.requests }
}
