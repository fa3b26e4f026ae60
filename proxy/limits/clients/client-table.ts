import type { Log } from '../../../shared/log.ts'
import type { RedisClient } from '../store/redis/run-script.ts'
import type { Policy } from '../../policy.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { Banning } from './banning.ts'
import {
  idOf,
  kindOf,
  loggedClient,
  policiesOfEntry,
  type ClientEntry,
  type EntryId,
  type EntryKind,
  type EntryOf,
  type OnBan,
  type TimedEntry,
} from './client-entry.ts'
import { ClientEntries } from './client-entries.ts'
import {
  createMemoryEntryStore,
  type EntryOutcome,
  type EntryStore,
  type OnEntryChange,
} from './entry-store.ts'
import { RedisEntryStore } from './redis/redis-entry-store.ts'

/** The clients that are banned, or have an override, at run time. */
export type ClientTable = {
  readonly entries: ClientEntries
  readonly refused: Banning['refused']
  readonly operations: EntryOperations
  /** The policies of the current table, without overrides. */
  readPolicies(): readonly Policy[]
  /** Call it with the policies of a new limits table, without overrides, when the table takes effect. */
  usePolicies(policies: readonly Policy[]): void
  /** Resolves when the stored entries have been read, or after a short wait. */
  ready(): Promise<void>
  close(): void
}

/** Operations for an operator. No method rejects. */
export type EntryOperations = {
  /** Lists the entries of one kind, the ones that end last first. */
  list<Kind extends EntryKind>(kind: Kind): Promise<readonly TimedEntry<EntryOf<Kind>>[]>
  put(entry: ClientEntry, forMs: number): Promise<EntryOutcome>
  remove(id: EntryId): Promise<EntryOutcome>
}

export type ClientTableOptions = {
  /** The policies that are enforced, without their overrides. */
  readonly policies: readonly Policy[]
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The time of day, in milliseconds since 1970. Default: the machine's. */
  readonly wallNow?: (() => number) | undefined
  readonly telemetry: Pick<Telemetry, 'clientBanned' | 'observeTable'>
  readonly logAddresses: boolean
  /** Called with each ban made in this process, by a rule or by an operator. */
  readonly onBan?: OnBan | undefined
  readonly log: Log
}

/** The Redis that holds the table, which this process copies. */
export type SharedBy = {
  readonly redis: RedisClient
  readonly keyPrefix: string
  /** Whether the Redis server of a key is answering. */
  readonly isAnswering: (key: string) => boolean
  /** Timeout of each command, in milliseconds. */
  readonly timeoutMs: number
}

/**
 * @param shared undefined: the table is in the memory of this process
 * @param changed called with each change of a table in memory, to update copies in other processes
 */
export function createClientTable(
  { policies: startPolicies, now, wallNow, telemetry, logAddresses, onBan, log }: ClientTableOptions,
  shared: SharedBy | undefined,
  changed?: OnEntryChange,
): ClientTable {
  const entries = new ClientEntries(now)
  let policies = startPolicies
  observeEntries(telemetry, entries)
  const store = shared
    ? new RedisEntryStore({ entries, now, log, ...shared })
    : createMemoryEntryStore(entries, changed)
  const banning = new Banning({
    store,
    policies,
    redis: shared?.redis,
    keyPrefix: shared?.keyPrefix ?? '',
    isAnswering: shared?.isAnswering ?? (() => false),
    telemetry,
    logAddresses,
    onBan,
    now,
    wallNow,
    log,
  })
  return {
    entries,
    refused: (policy, partitionKey) => banning.refused(policy, partitionKey),
    operations: createEntryOperations({
      entries,
      store,
      put(entry, forMs) {
        if (entry.kind === 'ban') onBan?.(entry, forMs, nameOf(entry))
      },
      removing: (id) => forgiveAll(banning, policies, id),
    }),
    readPolicies: () => policies,
    usePolicies(next) {
      policies = next
      banning.usePolicies(next)
    },
    ready: () => store.ready(),
    close: () => store.close(),
  }

  function nameOf(entry: ClientEntry): string | undefined {
    return loggedClient(entry.partitionKey, logAddresses, policiesOfEntry(idOf(entry), policies))
  }
}

/**
 * @param options.put called with each entry that an operator sets, even if the store has not confirmed it
 * @param options.removing called before a ban is removed
 */
function createEntryOperations(options: {
  readonly entries: ClientEntries
  readonly store: EntryStore
  readonly put: (entry: ClientEntry, forMs: number) => void
  readonly removing: (ban: EntryId) => Promise<void>
}): EntryOperations {
  const { entries, store, put, removing } = options
  return {
    list: (kind) => Promise.resolve(entries.list(kind)),
    async put(entry, forMs) {
      const outcome = await store.put(entry, forMs)
      if (outcome === 'done' || outcome === 'uncertain') put(entry, forMs)
      return outcome
    },
    async remove(id) {
      if (kindOf(id) === 'ban') await removing(id)
      return store.remove(id)
    },
  }
}

/** Resets the number of bans in a row of the banned client: under the rule of the ban, or under all rules. */
async function forgiveAll(banning: Banning, policies: readonly Policy[], ban: EntryId): Promise<void> {
  const [, policyName = '', partitionKey = ''] = ban.split(' ')
  const isOfAll = policyName.startsWith('*')
  const forgiving = policies.filter(({ name, ban: bans }) => bans && (isOfAll || policyName === name))
  await Promise.all(forgiving.map(({ name }) => banning.forgive(name, partitionKey)))
}

/** Adds metrics of how full the tables of bans and overrides are. */
export function observeEntries(telemetry: Pick<Telemetry, 'observeTable'>, entries: ClientEntries): void {
  telemetry.observeTable('bans', () => entries.readBanUse())
  telemetry.observeTable('overrides', () => entries.readOverrideUse())
}
