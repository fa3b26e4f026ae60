import type { Log } from '../../../shared/log.ts'
import { within } from '../../../shared/within.ts'
import { reasonOf } from '../store/redis/errors.ts'
import { createPoll } from '../store/redis/feeds/poll.ts'
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
 *
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.isAnswering whether there is any use in asking
 * @param options.timeoutMs for each change
 */
export function createRedisEntryStore(options: {
  readonly entries: ClientEntries
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly isAnswering: (key: string) => boolean
  readonly timeoutMs: number
  readonly log: Log
}): EntryStore {
  const { entries, redis, isAnswering, timeoutMs, log } = options
  const entriesKey = `${options.keyPrefix}:{clients}`
  const changesKey = `${entriesKey}:changes`
  /** The last change that has been read; undefined: everything must be read. */
  let lastChange: string | undefined
  /** Whether there was an entry that this version does not know, which is logged once. */
  let isNotUnderstood = false
  /** Bans that were made while Redis was away, and when they end. */
  const pendingSync = new Map<EntryId, { readonly entry: ClientEntry; readonly endsAtMs: number }>()

  async function look(): Promise<void> {
    const reply = await runScript(redis, readChangesScript, 2, [entriesKey, changesKey, lastChange ?? ''])
    if (!isChanges(reply)) throw new TypeError('unexpected reply from Redis: no changes')
    const [change, nowMs, isAll, ...rest] = reply
    if (isAll === 1) entries.clear()
    for (let at = 0; at < rest.length; at += 2) apply(String(rest[at]), rest[at + 1], Number(nowMs))
    lastChange = change
    if (pendingSync.size > 0) await syncPending()
  }

  function apply(id: EntryId, text: unknown, redisNowMs: number): void {
    const [, endsAt, json] = (typeof text === 'string' && /^(\d+) (.*)$/s.exec(text)) || []
    const entry = json === undefined ? undefined : readEntry(parse(json))
    const leftMs = Number(endsAt) - redisNowMs
    if (entry && leftMs > 0 && idOf(entry) === id) return void entries.set(entry, leftMs)
    if (json !== undefined && leftMs > 0 && !isNotUnderstood) {
      isNotUnderstood = true
      log.warn({ key: entriesKey }, NOT_UNDERSTOOD)
    }
    // It was removed, also from the pending writes.
    pendingSync.delete(id)
    entries.delete(id)
  }

  async function syncPending(): Promise<void> {
    for (const [id, ban] of [...pendingSync]) {
      // While the one before was written somebody may have lifted or changed this one.
      if (pendingSync.get(id) !== ban) continue
      const leftMs = ban.endsAtMs - performance.now()
      if (leftMs > 0) {
        entries.set(ban.entry, leftMs)
        await write(ban.entry, leftMs, 'extend')
      }
      if (pendingSync.get(id) === ban) pendingSync.delete(id)
    }
  }

  /** At most as many as the table itself can have. */
  function saveLater(entry: ClientEntry, forMs: number): void {
    const nowMs = performance.now()
    if (pendingSync.size >= MAX_RULE_BANS)
      for (const [id, { endsAtMs }] of pendingSync) if (endsAtMs <= nowMs) pendingSync.delete(id)
    const [oldest] = pendingSync.keys()
    if (pendingSync.size >= MAX_RULE_BANS && oldest !== undefined) pendingSync.delete(oldest)
    pendingSync.set(idOf(entry), { entry, endsAtMs: nowMs + forMs })
  }

  async function change(id: EntryId, most: number, ...values: readonly string[]): Promise<EntryOutcome> {
    const keys = [entriesKey, changesKey, `${entriesKey}:${kindOf(id)}`]
    const reply = await within(
      timeoutMs,
      runScript(redis, changeScript, keys.length, [...keys, id, String(most), ...values]),
    )
    return reply === 'full' || reply === 'absent' ? reply : 'done'
  }

  function write(entry: ClientEntry, forMs: number, ...how: readonly 'extend'[]): Promise<EntryOutcome> {
    const most = how.length > 0 ? MAX_RULE_BANS : MAX_ENTRIES
    return change(idOf(entry), most, String(Math.ceil(forMs)), JSON.stringify(entry), ...how)
  }

  /**
   * An entry accepted here is accepted everywhere. Commands are executed in their order, so there is room for one that is written
   * after it.
   */
  function removeAll(ids: readonly EntryId[]): void {
    for (const id of ids) {
      pendingSync.delete(id)
      void attempt(() => change(id, MAX_ENTRIES))
    }
  }

  async function extendThere(entry: ClientEntry, forMs: number): Promise<EntryOutcome> {
    const extend = (): Promise<EntryOutcome> => attempt(() => write(entry, forMs, 'extend'))
    const outcome = await extend()
    if (outcome !== 'full') return outcome
    // Other replicas have made bans of which this one has not heard.
    entries.delete(idOf(entry))
    const evicted = entries.evictBans()
    entries.set(entry, forMs, MAX_RULE_BANS)
    if (evicted.length === 0) return 'full'
    removeAll(evicted)
    return extend()
  }

  async function attempt(action: () => Promise<EntryOutcome>): Promise<EntryOutcome> {
    if (!isAnswering(entriesKey)) return 'unavailable'
    try {
      return await action()
    } catch (error) {
      log.error({ reason: reasonOf(error) }, 'Redis did not confirm a ban or an override')
      return 'uncertain'
    }
  }

  const poll = createPoll({
    look,
    isAnswering: () => isAnswering(entriesKey),
    key: entriesKey,
    failed: 'cannot read bans and overrides in Redis',
    log,
  })

  return {
    async put(entry, forMs) {
      const outcome = await attempt(() => write(entry, forMs))
      if (outcome === 'done') {
        pendingSync.delete(idOf(entry))
        entries.set(entry, forMs)
      }
      return outcome
    },
    async extend(entry, forMs) {
      if (entries.leftMs(idOf(entry)) >= forMs) return 'done'
      if (entry.kind === 'ban') removeAll(entries.makeRoomFor(entry))
      if (!entries.set(entry, forMs, MAX_RULE_BANS)) return 'full'
      const outcome = await extendThere(entry, forMs)
      if (outcome === 'full') entries.delete(idOf(entry))
      else if (outcome !== 'done') saveLater(entry, forMs)
      return outcome
    },
    async remove(id) {
      const outcome = await attempt(() => change(id, MAX_ENTRIES))
      if (outcome !== 'done' && outcome !== 'absent') return outcome
      const isPendingSync = pendingSync.delete(id)
      entries.delete(id)
      return isPendingSync ? 'done' : outcome
    },
    ready: () => within(READY_MS, poll.catchUp()).catch(() => undefined),
    close: () => poll.close(),
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
