import type { Log } from '../../../shared/log.ts'
import { within } from '../../../shared/within.ts'
import { reasonOf } from '../store/redis/errors.ts'
import { createPoll, type Poll } from '../store/redis/feeds/poll.ts'
import { runScript, script, type RedisClient } from '../store/redis/run-script.ts'
import {
  idOf,
  kindOf,
  MAX_ENTRIES,
  MAX_RULE_BANS,
  readEntry,
  type ClientEntry,
  type EntryId,
} from './client-entry.ts'
import type { ClientEntries } from './client-entries.ts'
import type { EntryOutcome, EntryStore } from './entry-store.ts'
import { PendingBans } from './pending-bans.ts'

const NOT_UNDERSTOOD =
  'some bans or overrides in Redis are not in force here: another version of the gateway has written them'

/** How long startup waits for the existing entries. */
const READY_MS = 1000

/**
 * Bans and overrides in Redis, which all replicas and workers copy. Each process polls four times a second for changes since its
 * last poll. Keys, all in one slot of a cluster:
 *
 * - `<prefix>:{clients}`: a hash of all entries: when each ends, by the clock of Redis, and its JSON
 * - `<prefix>:{clients}:ban`, `<prefix>:{clients}:override`: sorted sets of their ids by their ends
 * - `<prefix>:{clients}:changes`: a sorted set of ids by their last change, in microseconds of the clock of Redis
 */
export class RedisEntryStore implements EntryStore {
  /** The copy. */
  readonly #entries: ClientEntries
  readonly #redis: RedisClient
  readonly #entriesKey: string
  readonly #changesKey: string
  readonly #isAnswering: (key: string) => boolean
  readonly #timeoutMs: number
  readonly #log: Log
  readonly #poll: Poll
  /** The last change that has been read; undefined: everything must be read. */
  #lastChange: string | undefined
  /** Whether there was an entry that this version does not know, which is logged once. */
  #isNotUnderstood = false
  readonly #pendingBans: PendingBans

  /**
   * @param options.keyPrefix of `keyPrefixOf`
   * @param options.isAnswering whether there is any use in asking
   * @param options.timeoutMs for each change
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
    // It was removed, also from the pending writes.
    this.#pendingBans.delete(id)
    this.#entries.delete(id)
  }

  async #extendThere(entry: ClientEntry, forMs: number): Promise<EntryOutcome> {
    const extend = (): Promise<EntryOutcome> => this.#attempt(() => this.#write(entry, forMs, 'extend'))
    const outcome = await extend()
    if (outcome !== 'full') return outcome
    // Other replicas have made bans of which this one has not heard.
    this.#entries.delete(idOf(entry))
    const evicted = this.#entries.evictBans()
    this.#entries.set(entry, forMs, MAX_RULE_BANS)
    if (evicted.length === 0) return 'full'
    this.#removeAll(evicted)
    return extend()
  }

  /**
   * An entry accepted here is accepted everywhere. Commands are executed in their order, so there is room for one that is written
   * after it.
   */
  #removeAll(ids: readonly EntryId[]): void {
    for (const id of ids) {
      this.#pendingBans.delete(id)
      void this.#attempt(() => this.#change(id, MAX_ENTRIES))
    }
  }

  #write(entry: ClientEntry, forMs: number, ...how: readonly 'extend'[]): Promise<EntryOutcome> {
    const most = how.length > 0 ? MAX_RULE_BANS : MAX_ENTRIES
    return this.#change(idOf(entry), most, String(Math.ceil(forMs)), JSON.stringify(entry), ...how)
  }

  /** Puts an entry, or without `values` removes it, as `changeScript` says. */
  async #change(id: EntryId, most: number, ...values: readonly string[]): Promise<EntryOutcome> {
    const keys = [this.#entriesKey, this.#changesKey, `${this.#entriesKey}:${kindOf(id)}`]
    const reply = await within(
      this.#timeoutMs,
      runScript(this.#redis, changeScript, keys.length, [...keys, id, String(most), ...values]),
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

/**
 * KEYS   entries, changes, ids of the kind by their ends
 * ARGV   the id, how many of the kind there can be; to put it: for how many milliseconds, and its JSON; `extend` where one that
 *        lasts longer is to stay
 * reply  'done', 'absent' or 'full'
 *
 * Expired entries are removed in passing. All keys end an hour after the last entry.
 */
const changeScript = script(`
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)

local function text(number) return string.format('%.0f', number) end

local ended = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', text(nowMs), 'LIMIT', 0, 100)
for _, id in ipairs(ended) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[3], id)
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(nowUs - 3600000000))

local reply = 'done'
if #ARGV == 2 then
  -- Told also where it is not here: a replica may have it that could not write it yet.
  if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then reply = 'absent' end
  redis.call('ZREM', KEYS[3], ARGV[1])
else
  local known = redis.call('ZSCORE', KEYS[3], ARGV[1])
  if not known and redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[2]) then return 'full' end
  if known and ARGV[5] == 'extend' and tonumber(known) >= nowMs + ARGV[3] then return 'done' end
  local endsAt = text(nowMs + ARGV[3])
  redis.call('HSET', KEYS[1], ARGV[1], endsAt .. ' ' .. ARGV[4])
  redis.call('ZADD', KEYS[3], endsAt, ARGV[1])
end

local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local change = math.max(nowUs, (tonumber(last[2]) or 0) + 1)
redis.call('ZADD', KEYS[2], text(change), ARGV[1])
local keepMs = (ARGV[3] or 0) + 3600000
for _, key in ipairs(KEYS) do
  if redis.call('PTTL', key) < keepMs then redis.call('PEXPIRE', key, text(keepMs)) end
end
return reply
`)

/**
 * KEYS   entries, changes
 * ARGV   the last change that is known, or ''
 * reply  the last change there is, the time in milliseconds, and where it is not the known one 1 if all entries follow,
 *        otherwise 0; then ids with the entry of each, or false
 */
const readChangesScript = script(`
local change = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
if ARGV[1] == change then return { change, '0', 0 } end
local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local known = change and tonumber(ARGV[1])
change = change or string.format('%.0f', time[1] * 1000000 + time[2])
-- Changes are kept for an hour; there are none where nothing has been put for as long.
if not known or known > tonumber(change) or known < (time[1] - 3600) * 1000000 then
  local reply = redis.call('HGETALL', KEYS[1])
  table.insert(reply, 1, 1)
  table.insert(reply, 1, nowMs)
  table.insert(reply, 1, change)
  return reply
end
local reply = { change, nowMs, 0 }
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf')) do
  reply[#reply + 1] = id
  reply[#reply + 1] = redis.call('HGET', KEYS[1], id)
end
return reply
`)

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
