import type { Log } from '../../../../shared/log.ts'
import { within } from '../../../../shared/within.ts'
import { reasonOf } from '../../store/redis/errors.ts'
import { createPoll, type Poll } from '../../store/redis/feeds/poll.ts'
import { runScript, type RedisClient } from '../../store/redis/run-script.ts'
import {
  idOf,
  kindOf,
  MAX_ENTRIES,
  MAX_RULE_BANS,
  readEntry,
  type ClientEntry,
  type EntryId,
} from '../client-entry.ts'
import type { ClientEntries } from '../client-entries.ts'
import type { EntryOutcome, EntryStore } from '../entry-store.ts'
import { PendingBans } from '../pending-bans.ts'
import { changeScript, readChangesScript } from './redis-entry-scripts.ts'

const NOT_UNDERSTOOD =
  'some bans or overrides in Redis have no effect here: another version of the gateway has written them'

/** How long startup waits for the existing entries. */
const READY_MS = 1000

/**
 * Stores bans and overrides in Redis, from which all replicas and workers copy them. Each process polls four times a second for changes
 * since its last poll. The keys are all in one slot of a cluster:
 *
 * - `<prefix>:{clients}`: a hash of all entries; each value has the entry's end, by the clock of Redis, and its JSON
 * - `<prefix>:{clients}:ban`, `<prefix>:{clients}:override`: sorted sets of their ids by their ends
 * - `<prefix>:{clients}:changes`: a sorted set of ids by their last change, in microseconds of the clock of Redis
 */
export class RedisEntryStore implements EntryStore {
  /** This process's copy. */
  readonly #entries: ClientEntries
  readonly #redis: RedisClient
  readonly #entriesKey: string
  readonly #changesKey: string
  readonly #isAnswering: (key: string) => boolean
  readonly #timeoutMs: number
  readonly #log: Log
  readonly #poll: Poll
  /** The last change that was read; undefined: all entries must be read. */
  #lastChange: string | undefined
  /** Whether an entry in an unknown format was found, which is logged once. */
  #isNotUnderstood = false
  readonly #pendingBans: PendingBans

  /**
   * @param options.keyPrefix the result of `keyPrefixOf`
   * @param options.isAnswering whether the Redis server of a key is answering
   * @param options.timeoutMs timeout of each change
   * @param options.now milliseconds of a monotonic clock
   */
  constructor(options: {
    readonly entries: ClientEntries
    readonly redis: RedisClient
    readonly keyPrefix: string
    readonly isAnswering: (key: string) => boolean
    readonly timeoutMs: number
    readonly now: () => number
    readonly log: Log
  }) {
    this.#entries = options.entries
    this.#redis = options.redis
    this.#entriesKey = `${options.keyPrefix}:{clients}`
    this.#changesKey = `${this.#entriesKey}:changes`
    this.#isAnswering = options.isAnswering
    this.#timeoutMs = options.timeoutMs
    this.#log = options.log
    this.#pendingBans = new PendingBans(options.now)
    this.#poll = createPoll({
      look: () => this.#look(),
      isAnswering: () => this.#isAnswering(this.#entriesKey),
      key: this.#entriesKey,
      failed: 'cannot read bans and overrides in Redis',
      log: this.#log,
    })
  }

  async put(entry: ClientEntry, forMs: number): Promise<EntryOutcome> {
    const outcome = await this.#attempt(() => this.#write(entry, forMs))
    if (outcome === 'done') {
      this.#pendingBans.delete(idOf(entry))
      this.#entries.set(entry, forMs)
    }
    return outcome
  }

  async extend(entry: ClientEntry, forMs: number): Promise<EntryOutcome> {
    const entries = this.#entries
    if (entries.leftMs(idOf(entry)) >= forMs) return 'done'
    if (entry.kind === 'ban') this.#removeAll(entries.makeRoomFor(entry))
    if (!entries.set(entry, forMs, MAX_RULE_BANS)) return 'full'
    const outcome = await this.#extendThere(entry, forMs)
    if (outcome === 'full') entries.delete(idOf(entry))
    else if (outcome !== 'done') this.#pendingBans.add(entry, forMs)
    return outcome
  }

  async remove(id: EntryId): Promise<EntryOutcome> {
    const outcome = await this.#attempt(() => this.#change(id, MAX_ENTRIES))
    if (outcome !== 'done' && outcome !== 'absent') return outcome
    const isPending = this.#pendingBans.delete(id)
    this.#entries.delete(id)
    return isPending ? 'done' : outcome
  }

  ready(): Promise<void> {
    return within(READY_MS, this.#poll.catchUp()).catch(() => undefined)
  }

  close(): void {
    this.#poll.close()
  }

  async #look(): Promise<void> {
    const keysAndLast = [this.#entriesKey, this.#changesKey, this.#lastChange ?? '']
    const reply = await runScript(this.#redis, readChangesScript, 2, keysAndLast)
    if (!isChanges(reply)) throw new TypeError('unexpected reply from Redis: no changes')
    const [change, nowMs, isAll, ...rest] = reply
    if (isAll === 1) this.#entries.clear()
    for (let at = 0; at < rest.length; at += 2) this.#apply(String(rest[at]), rest[at + 1], Number(nowMs))
    this.#lastChange = change
    await this.#pendingBans.writeAll((entry, leftMs) => {
      this.#entries.set(entry, leftMs)
      return this.#write(entry, leftMs, 'extend')
    })
  }

  #apply(id: EntryId, text: unknown, redisNowMs: number): void {
    const [, endsAt, json] = (typeof text === 'string' && /^(\d+) (.*)$/s.exec(text)) || []
    const entry = json === undefined ? undefined : readEntry(parse(json))
    const leftMs = Number(endsAt) - redisNowMs
    if (entry && leftMs > 0 && idOf(entry) === id) return void this.#entries.set(entry, leftMs)
    if (json !== undefined && leftMs > 0 && !this.#isNotUnderstood) {
      this.#isNotUnderstood = true
      this.#log.warn({ key: this.#entriesKey }, NOT_UNDERSTOOD)
    }
    // The entry was removed, has ended or cannot be read: a pending write must not restore it.
    this.#pendingBans.delete(id)
    this.#entries.delete(id)
  }

  async #extendThere(entry: ClientEntry, forMs: number): Promise<EntryOutcome> {
    const extend = (): Promise<EntryOutcome> => this.#attempt(() => this.#write(entry, forMs, 'extend'))
    const outcome = await extend()
    if (outcome !== 'full') return outcome
    // Other replicas have made bans that this one does not know yet.
    this.#entries.delete(idOf(entry))
    const evicted = this.#entries.evictBans()
    this.#entries.set(entry, forMs, MAX_RULE_BANS)
    if (evicted.length === 0) return 'full'
    this.#removeAll(evicted)
    return extend()
  }

  /**
   * Removes evicted entries from Redis, too, so that an entry accepted here is accepted everywhere. Redis executes commands in order, so an
   * entry that is written afterwards finds room.
   */
  #removeAll(ids: readonly EntryId[]): void {
    for (const id of ids) {
      this.#pendingBans.delete(id)
      void this.#attempt(() => this.#change(id, MAX_ENTRIES))
    }
  }

  #write(entry: ClientEntry, forMs: number, ...how: readonly 'extend'[]): Promise<EntryOutcome> {
    const max = how.length > 0 ? MAX_RULE_BANS : MAX_ENTRIES
    return this.#change(idOf(entry), max, String(Math.ceil(forMs)), JSON.stringify(entry), ...how)
  }

  /** Puts an entry or, without `values`, removes it (`changeScript`). */
  async #change(id: EntryId, max: number, ...values: readonly string[]): Promise<EntryOutcome> {
    const keys = [this.#entriesKey, this.#changesKey, `${this.#entriesKey}:${kindOf(id)}`]
    const reply = await within(
      this.#timeoutMs,
      runScript(this.#redis, changeScript, keys.length, [...keys, id, String(max), ...values]),
    )
    return reply === 'full' || reply === 'absent' ? reply : 'done'
  }

  async #attempt(action: () => Promise<EntryOutcome>): Promise<EntryOutcome> {
    if (!this.#isAnswering(this.#entriesKey)) return 'unavailable'
    try {
      return await action()
    } catch (error) {
      this.#log.error({ reason: reasonOf(error) }, 'Redis did not confirm a ban or an override')
      return 'uncertain'
    }
  }
}

type Changes = readonly [change: string, nowMs: string, isAll: number, ...unknown[]]

function isChanges(reply: unknown): reply is Changes {
  return Array.isArray(reply) && reply.length >= 3 && typeof reply[0] === 'string'
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
