import { bucketsLua } from '../buckets.ts'
import { callsLua } from '../checks/rights.ts'
import { script } from '../run-script.ts'
import { slidingLua } from '../sliding.ts'

const markLua = `
if not redis.call('SET', KEYS[1], 1, 'PX', ARGV[1], 'NX') then return 0 end
${callsLua}`

const fixedLua = `
local fixed = tonumber(ARGV[2])
for i = 1, fixed do
  local key = KEYS[1 + i]
  local counted = call('INCRBY', key, ARGV[2 + 2 * i])
  if type(counted) == 'number' then
    local left = must('PTTL', key)
    if not denied and left < 0 then must('PEXPIRE', key, ARGV[3 + 2 * i]) end
    if denied then
      if tostring(counted) == ARGV[2 + 2 * i] then call('DEL', key) else call('INCRBY', key, -ARGV[2 + 2 * i]) end
      return redis.error_reply(denied)
    end
  end
end`

/**
 * As `addOnceScript`, for fixed windows alone. A cluster gets the text for each client: it is a sixth of the other's.
 *
 * KEYS   a mark that records that it was done; then the counters
 * ARGV   as there
 * reply  as there
 */
export const addFixedOnceScript = script(`${markLua}${fixedLua}
return 1
`)

/**
 * Adds requests admitted without the counters to them, once, however often it is sent.
 *
 * KEYS   a mark that records that it was done; then the counters of fixed windows; then token buckets; then sliding windows
 * ARGV   how long the mark is kept, in milliseconds, and how many counters are of fixed windows, and how many are buckets.
 *        For each fixed window the amount and the milliseconds left of it, which count only where the counter is not
 *        there: a running window keeps its end. For each bucket the debt to add, in microseconds. For each sliding window
 *        the quota, the window in milliseconds, how many times follow, and these, oldest first, as ages in microseconds
 * reply  1 where it was added now, 0 where it had been added before
 *
 * A sliding window keeps as many of its newest times as the quota allows: older ones would decide nothing. Where the
 * user lacks a right, the counter in question is restored or deleted, so that none stays without an expiry, and the script
 * fails.
 */
export const addOnceScript = script(`${markLua}${fixedLua}
${slidingLua}
local nowUs
${bucketsLua}

-- Puts the times in their places between those that are there; both are in order, and few that are there are newer.
local function insert(key, times, windowUs, quota)
  local newer = {}
  local last = tonumber(call('LINDEX', key, -1))
  while last and last > times[1] do
    newer[#newer + 1] = tonumber(call('RPOP', key))
    last = tonumber(call('LINDEX', key, -1))
  end
  local newestUs = math.max(times[#times], newer[1] or 0)
  for _, time in ipairs(times) do
    while newer[1] and newer[#newer] <= time do call('RPUSH', key, table.remove(newer)) end
    if type(call('RPUSH', key, time)) ~= 'number' then return end
  end
  while newer[1] do call('RPUSH', key, table.remove(newer)) end
  must('LTRIM', key, -quota, -1)
  expireAfter(key, newestUs, windowUs)
  if denied then call('DEL', key) end
end

local buckets = tonumber(ARGV[3])
nowUs = readClockUs()
if denied then return redis.error_reply(denied) end
local at = 4 + 2 * fixed
for i = 2 + fixed, 1 + fixed + buckets do
  local bucket = readBucket(KEYS[i])
  if bucket then
    bucket.debtUs = bucket.debtUs + ARGV[at]
    writeBucket(KEYS[i], bucket)
  end
  if denied then return redis.error_reply(denied) end
  at = at + 1
end
for i = 2 + fixed + buckets, #KEYS do
  local times = {}
  for age = at + 3, at + 2 + ARGV[at + 2] do times[#times + 1] = nowUs - ARGV[age] end
  insert(KEYS[i], times, ARGV[at + 1] * 1000, tonumber(ARGV[at]))
  if denied then return redis.error_reply(denied) end
  at = at + 3 + #times
end
return 1
`)
