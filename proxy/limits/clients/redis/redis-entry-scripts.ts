import { script } from '../../store/redis/run-script.ts'

/**
 * KEYS   entries, changes, ids of the kind sorted by the entries' ends
 * ARGV   the id, the maximum number of entries of the kind; to put the entry, also its milliseconds and its JSON, and `extend` to keep an
 *        existing entry that ends later
 * reply  'done', 'absent' or 'full'
 *
 * Also removes expired entries. All keys expire an hour after the last entry.
 */
export const changeScript = script(`
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
  -- Announced even if it is not here: a replica that could not write it yet may have it.
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
 * ARGV   the last change that the caller knows, or ''
 * reply  the last change, the time in milliseconds, and 1 if all entries follow, otherwise 0; then, if the last change is not known yet,
 *        each id and its entry, or false if the entry was removed
 */
export const readChangesScript = script(`
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
