import type { Charge } from '../limiter.ts'
import type { Policy } from '../../policy.ts'
import { withQuota } from '../algorithms/registry.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import { BanNetworks } from './ban-networks.ts'
import {
  entryId,
  everywhereId,
  idOf,
  MAX_BANS_PER_SITE,
  MAX_ENTRIES,
  MAX_RULE_BANS,
  partsOf,
  scopeOf,
  type Ban,
  type ClientEntry,
  type ClientOverride,
  type EntryId,
  type EntryKind,
  type EntryOf,
  type TimedEntry,
} from './client-entry.ts'
import { EntryMap } from './entry-map.ts'

/** A ban that applies to a request. `policy` is the policy under which the client is banned; undefined: under all. */
export type AppliedBan = {
  readonly policy: Policy | undefined
  /** The banned partition key; undefined if the client's address is banned. */
  readonly partitionKey?: string
  readonly leftMs: number
}

/**
 * This process's copy of the bans and overrides that are set at run time. Every request reads it, so it uses plain maps: without entries, a
 * request costs three comparisons of numbers.
 */
export class ClientEntries {
  readonly #networks = new BanNetworks()
  readonly #bans = new EntryMap<Ban>((id, ban) => this.#networks.delete(id, ban))
  readonly #overrides = new EntryMap<ClientOverride>()
  readonly #now: () => number
  #evictions = 0
  /** Called when an override was added, or its quota has changed. */
  onOverride: ((policyName: string, partitionKey: string) => void) | undefined

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Finds a ban of an address under all rules.
   *
   * @param address the address or network that counts as a client
   */
  findAddressBan(address: string): AppliedBan | undefined {
    if (this.#bans.size === 0) return undefined
    const leftMs = this.#bans.leftMs(everywhereId('', address), this.#now())
    return leftMs > 0 ? { policy: undefined, leftMs } : undefined
  }

  /** Finds a ban of one of the request's keys: under all rules, or under one rule. */
  findKeyBan(charges: readonly Charge[]): AppliedBan | undefined {
    if (this.#bans.size === 0) return undefined
    const nowMs = this.#now()
    for (const { policy, partitionKey } of charges) {
      const everywhereMs = this.#bans.leftMs(everywhereId(partsOf(policy, partitionKey), partitionKey), nowMs)
      if (everywhereMs > 0) return { policy: undefined, partitionKey, leftMs: everywhereMs }
      const hereMs = this.#bans.leftMs(entryId('ban', policy.name, partitionKey), nowMs)
      if (hereMs > 0 && policy.mode === 'enforce') return { policy, partitionKey, leftMs: hereMs }
    }
    return undefined
  }

  /** Returns the charges, with the policies of clients that have an override. */
  withOverrides(charges: readonly Charge[]): readonly Charge[] {
    if (this.#overrides.size === 0) return charges
    const nowMs = this.#now()
    let changed: Charge[] | undefined
    for (const [at, charge] of charges.entries()) {
      const { policy, device, partitionKey } = charge
      // A device has the override of its account.
      const override = this.#overrides.find(
        entryId('override', policy.name, device?.accountKey ?? partitionKey),
        nowMs,
      )
      if (!override) continue
      changed ??= [...charges]
      changed[at] = { ...charge, policy: withQuota(policy, override.requests) }
    }
    return changed ?? charges
  }

  /** Describes the entries of a client under a policy, for operators. */
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

  /** The label of a client with an override. */
  labelOf(policyName: string, partitionKey: string): string | undefined {
    return this.#overrides.find(entryId('override', policyName, partitionKey), this.#now())?.label
  }

  /**
   * Makes room for one more ban by a rule. If its IPv6 /48 network has too many bans, evicts the one that ends soonest; if the table is
   * full, calls `evictBans`. Bans by operators are kept.
   *
   * @returns the evicted entries
   */
  makeRoomFor(ban: Ban): readonly EntryId[] {
    const nowMs = this.#now()
    if (this.#bans.find(idOf(ban), nowMs)) return []
    const beside = this.#networks.idsBeside(ban)
    if (beside && beside.size >= MAX_BANS_PER_SITE) return this.#evict(this.#bans.soonest(1, beside))
    return this.#bans.isFull(MAX_RULE_BANS, nowMs) ? this.evictBans() : []
  }

  /**
   * Evicts a hundredth of the table, so that the next bans find room at once: of the rules with the most bans, those that end soonest.
   * Clients that make up keys under one rule thus cannot evict the bans of a rule with fewer bans. Returns the evicted entries.
   */
  evictBans(): readonly EntryId[] {
    return this.#evict(
      this.#bans.soonestOfLargest(EVICTED_AT_ONCE, (id, { by }) => (by === 'rule' ? scopeOf(id) : undefined)),
    )
  }

  #evict(ids: readonly EntryId[]): readonly EntryId[] {
    for (const id of ids) this.#bans.remove(id)
    this.#evictions += ids.length
    return ids
  }

  /** Adds or replaces an entry. Returns false if there are already `max` other entries of its kind. */
  set(entry: ClientEntry, leftMs: number, max = MAX_ENTRIES): boolean {
    const nowMs = this.#now()
    const id = idOf(entry)
    if (entry.kind === 'ban') {
      const isAdded = this.#bans.set(id, entry, nowMs + leftMs, nowMs, max)
      if (isAdded) this.#networks.add(id, entry)
      return isAdded
    }
    const before = this.#overrides.find(id, nowMs)?.requests
    const isSet = this.#overrides.set(id, entry, nowMs + leftMs, nowMs)
    if (isSet && before !== entry.requests) this.onOverride?.(entry.policy, entry.partitionKey)
    return isSet
  }

  /** Returns whether the entry existed. */
  delete(id: EntryId): boolean {
    const nowMs = this.#now()
    return [this.#bans.delete(id, nowMs), this.#overrides.delete(id, nowMs)].includes(true)
  }

  /** Milliseconds until an entry ends; 0 if there is no such entry. */
  leftMs(id: EntryId): number {
    const nowMs = this.#now()
    return this.#bans.leftMs(id, nowMs) || this.#overrides.leftMs(id, nowMs)
  }

  /** Lists entries of one kind, the ones that end last first. */
  list<Kind extends EntryKind>(kind: Kind): TimedEntry<EntryOf<Kind>>[]
  list(kind: EntryKind): TimedEntry[] {
    const nowMs = this.#now()
    const entries: TimedEntry[] = kind === 'ban' ? this.#bans.list(nowMs) : this.#overrides.list(nowMs)
    return entries.sort((a, b) => b.leftMs - a.leftMs)
  }

  /** Lists the entries of both kinds. */
  all(): TimedEntry[] {
    return [...this.list('ban'), ...this.list('override')]
  }

  clear(): void {
    this.#bans.clear()
    this.#overrides.clear()
  }

  readBanUse(): TableUse {
    return { ...this.#bans.readUse(this.#now()), evictions: this.#evictions }
  }

  readOverrideUse(): TableUse {
    return this.#overrides.readUse(this.#now())
  }
}

/** The number of bans to evict from a full table at a time, because each eviction scans the whole table. */
const EVICTED_AT_ONCE = MAX_RULE_BANS / 100
