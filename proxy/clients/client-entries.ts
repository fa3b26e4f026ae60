import type { Charge } from '../limiter/limiter.ts'
import { withQuota, type Policy } from '../policy.ts'
import type { TableUse } from '../telemetry/telemetry.ts'
import {
  entryId,
  everywhereId,
  idOf,
  MOST_ENTRIES,
  partsOf,
  type Ban,
  type ClientEntry,
  type ClientOverride,
  type EntryId,
  type TimedEntry,
} from './client-entry.ts'

/** A ban that applies to a request. `policy` is the one under which the client is banned; undefined for all of them. */
export type AppliedBan = { readonly policy: Policy | undefined; readonly leftMs: number }

/**
 * This process's copy of the bans and overrides that are set at run time. Looked at for each request, so it is plain maps:
 * where there are none, a request pays for three comparisons of numbers.
 */
export class ClientEntries {
  readonly #bans = new EntryMap<Ban>()
  readonly #overrides = new EntryMap<ClientOverride>()
  readonly #now: () => number
  /** Called with each limit of a client that is another one now than what was known of it. */
  onOverride: ((policyName: string, partitionKey: string) => void) | undefined

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * The ban of an address, under all rules.
   *
   * @param address as it counts
   */
  findAddressBan(address: string): AppliedBan | undefined {
    if (this.#bans.size === 0) return undefined
    const leftMs = this.#bans.leftMs(everywhereId('', address), this.#now())
    return leftMs > 0 ? { policy: undefined, leftMs } : undefined
  }

  /** The ban of a client by one of the keys that its request counts under: under all rules, or under one of its own. */
  findKeyBan(charges: readonly Charge[]): AppliedBan | undefined {
    if (this.#bans.size === 0) return undefined
    const nowMs = this.#now()
    for (const { policy, partitionKey } of charges) {
      const everywhereMs = this.#bans.leftMs(everywhereId(partsOf(policy, partitionKey), partitionKey), nowMs)
      if (everywhereMs > 0) return { policy: undefined, leftMs: everywhereMs }
      const hereMs = this.#bans.leftMs(entryId('ban', policy.name, partitionKey), nowMs)
      if (hereMs > 0 && policy.mode === 'enforce') return { policy, leftMs: hereMs }
    }
    return undefined
  }

  /** The charges with the quotas of those clients that have one of their own. */
  withOverrides(charges: readonly Charge[]): readonly Charge[] {
    if (this.#overrides.size === 0) return charges
    const nowMs = this.#now()
    let changed: Charge[] | undefined
    for (const [at, charge] of charges.entries()) {
      const { policy, partitionKey } = charge
      const override = this.#overrides.find(entryId('override', policy.name, partitionKey), nowMs)
      if (!override) continue
      changed ??= [...charges]
      changed[at] = { ...charge, policy: withQuota(policy, override.requests) }
    }
    return changed ?? charges
  }

  /** What is said of a client under a policy, for operators. */
  describe({ policy, partitionKey }: Charge): {
    readonly bannedForMs?: number
    readonly overriddenForMs?: number
    readonly label?: string
  } {
    const nowMs = this.#now()
    const bannedForMs = Math.max(
      this.#bans.leftMs(entryId('ban', policy.name, partitionKey), nowMs),
      this.#bans.leftMs(everywhereId(partsOf(policy, partitionKey), partitionKey), nowMs),
    )
    const overriddenForMs = this.#overrides.leftMs(entryId('override', policy.name, partitionKey), nowMs)
    const label = this.labelOf(policy.name, partitionKey)
    return {
      ...(bannedForMs > 0 && { bannedForMs }),
      ...(overriddenForMs > 0 && { overriddenForMs }),
      ...(label !== undefined && { label }),
    }
  }

  /** What an operator calls a client that has a limit of its own. */
  labelOf(policyName: string, partitionKey: string): string | undefined {
    return this.#overrides.find(entryId('override', policyName, partitionKey), this.#now())?.label
  }

  /** Adds or replaces. Returns false where there are too many already: `most`, of the kind. */
  set(entry: ClientEntry, leftMs: number, most = MOST_ENTRIES): boolean {
    const nowMs = this.#now()
    const id = idOf(entry)
    if (entry.kind === 'ban') return this.#bans.set(id, entry, nowMs + leftMs, nowMs, most)
    const before = this.#overrides.find(id, nowMs)?.requests
    const isSet = this.#overrides.set(id, entry, nowMs + leftMs, nowMs)
    if (isSet && before !== entry.requests) this.onOverride?.(entry.policy, entry.partitionKey)
    return isSet
  }

  /** Returns whether it was there. */
  delete(id: EntryId): boolean {
    const nowMs = this.#now()
    return [this.#bans.delete(id, nowMs), this.#overrides.delete(id, nowMs)].includes(true)
  }

  /** How long an entry still lasts; 0 where there is none. */
  leftMs(id: EntryId): number {
    const nowMs = this.#now()
    return this.#bans.leftMs(id, nowMs) || this.#overrides.leftMs(id, nowMs)
  }

  /** Those that end last come first. */
  list<Kind extends ClientEntry['kind']>(kind: Kind): TimedEntry<Extract<ClientEntry, { kind: Kind }>>[]
  list(kind: ClientEntry['kind']): TimedEntry[] {
    const nowMs = this.#now()
    const entries: TimedEntry[] = kind === 'ban' ? this.#bans.list(nowMs) : this.#overrides.list(nowMs)
    return entries.sort((a, b) => b.leftMs - a.leftMs)
  }

  /** Both kinds. */
  all(): TimedEntry[] {
    return [...this.list('ban'), ...this.list('override')]
  }

  clear(): void {
    this.#bans.clear()
    this.#overrides.clear()
  }

  readBanUse(): TableUse {
    return this.#bans.readUse(this.#now())
  }

  readOverrideUse(): TableUse {
    return this.#overrides.readUse(this.#now())
  }
}

/** Entries that end by themselves, at most `MOST_ENTRIES`. */
class EntryMap<Entry extends ClientEntry> {
  readonly #entries = new Map<EntryId, { readonly entry: Entry; readonly endsAtMs: number }>()

  get size(): number {
    return this.#entries.size
  }

  find(id: EntryId, nowMs: number): Entry | undefined {
    const found = this.#entries.get(id)
    if (!found) return undefined
    if (found.endsAtMs > nowMs) return found.entry
    this.#entries.delete(id)
    return undefined
  }

  leftMs(id: EntryId, nowMs: number): number {
    return this.find(id, nowMs) ? (this.#entries.get(id)?.endsAtMs ?? 0) - nowMs : 0
  }

  set(id: EntryId, entry: Entry, endsAtMs: number, nowMs: number, most = MOST_ENTRIES): boolean {
    if (!this.#entries.has(id) && this.size >= most) {
      this.#prune(nowMs)
      if (this.size >= most) return false
    }
    this.#entries.set(id, { entry, endsAtMs })
    return true
  }

  delete(id: EntryId, nowMs: number): boolean {
    const isThere = this.find(id, nowMs) !== undefined
    this.#entries.delete(id)
    return isThere
  }

  list(nowMs: number): TimedEntry<Entry>[] {
    this.#prune(nowMs)
    return Array.from(this.#entries, ([id, { entry, endsAtMs }]) => ({ id, entry, leftMs: endsAtMs - nowMs }))
  }

  clear(): void {
    this.#entries.clear()
  }

  readUse(nowMs: number): TableUse {
    this.#prune(nowMs)
    return { size: this.size, capacity: MOST_ENTRIES, evictions: 0 }
  }

  #prune(nowMs: number): void {
    for (const [id, { endsAtMs }] of this.#entries) if (endsAtMs <= nowMs) this.#entries.delete(id)
  }
}
