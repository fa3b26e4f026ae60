import { largestQuota } from '../../../policy/plans.ts'
import type { RedisCounts } from '../redis-counts.ts'

/**
 * A sliding window in Redis is a list of the times, in microseconds of Redis's clock, at which its client was admitted, oldest
 * first; equal times are adjacent. A time leaves the window exactly one window's length later: at t, the times in
 * (t - window, t] count. Times that have left are removed at the client's next request, and the key expires when the last time
 * leaves. The ticket is the time.
 */
export const slidingInRedis: RedisCounts = {
  keyEnd: ({ windowMs, sharedWindowMs = windowMs }) => `${sharedWindowMs}:sliding`,
  commands: {
    always: [
      ['TIME'],
      ['LINDEX', '0'],
      ['LTRIM', '0', '-1'],
      ['RPUSH', '0'],
      ['RPOP'],
      ['PEXPIREAT', '1'],
      ['DEL'],
    ],
    reserving: [['LREM', '0', '0']],
    cluster: [['LREM', '0', '0']],
  },
  ticketOf: (_leftMs, countedAt) => String(countedAt),
  // The largest quota that the client may have; then ages in microseconds, oldest first.
  addedValues: ({ counted }, nowMs, policy) => [
    String(largestQuota(policy)),
    ...counted.map((timeMs) => String(Math.floor((nowMs - timeMs) * 1000))),
  ],
  lua: {
    /*
     * The number of times to remove is found in steps that double, then by halving. It is mostly one, but thousands must not
     * cost thousands of commands. If Redis's clock was set back, the list is not in order; but the times before one that has
     * left were admitted earlier, so they must go, too.
     */
    common: `
local function timeAt(key, index)
  local time = must('LINDEX', key, index)
  return type(time) == 'string' and tonumber(time) or nil
end

-- The oldest time after leftUs, once all others are taken out; nil where there is none, and nil with an error text
-- where the key holds something else.
local function oldestAfter(key, leftUs)
  local first = call('LINDEX', key, 0)
  if not first then return nil end
  local oldest = tonumber(first)
  if not oldest then return nil, type(first) == 'table' and first.err .. ' (LINDEX)' or 'WRONGTYPE not a list of times' end
  if oldest > leftUs then return oldest end
  local gone, kept = 0, 1
  oldest = timeAt(key, kept)
  while oldest and oldest <= leftUs do
    gone, kept = kept, 2 * kept
    oldest = timeAt(key, kept)
  end
  while kept - gone > 1 do
    local middle = math.floor((gone + kept) / 2)
    local time = timeAt(key, middle)
    if time and time <= leftUs then gone = middle else kept, oldest = middle, time end
  end
  must('LTRIM', key, kept, -1)
  return oldest, denied
end

-- Lets the key go once the time has left its window, and not before: keys expire at whole milliseconds.
local function expireAfter(key, timeUs, windowUs)
  must('PEXPIREAT', key, math.ceil((timeUs + windowUs) / 1000))
end
`,
    decide: `
-- Takes all times to be of now. Returns the oldest after that.
local function bringBack(key, nowUs)
  local count = call('LLEN', key)
  if type(count) ~= 'number' then return timeAt(key, 0) end
  for _ = 1, count do must('RPUSH', key, nowUs) end
  must('LTRIM', key, count, -1)
  return nowUs
end

-- Takes out the newest times.
local function takeBack(key, units)
  if units == 1 then return must('RPOP', key) end
  return must('LTRIM', key, 0, -1 - units)
end

local function push(key, units, nowUs)
  if units == 1 then return call('RPUSH', key, nowUs) end
  local times = {}
  for unit = 1, units do times[unit] = nowUs end
  return call('RPUSH', key, unpack(times))
end

function algorithm.count(key, policy, units)
  units = tonumber(units)
  local quota, windowUs, nowUs = policy.quota, policy.windowUs, readClockUs()
  if not nowUs then return nil, denied end
  local oldestUs, failure = oldestAfter(key, nowUs - windowUs)
  if failure then return nil, failure end
  -- The clock has been set back: times in the future must not count for that long.
  if oldestUs and oldestUs > nowUs then
    oldestUs = bringBack(key, nowUs)
    expireAfter(key, nowUs, windowUs)
  end
  -- If there is never room for so many, one shows how many there are.
  local pushed = units > quota and 1 or units
  local counted = push(key, pushed, nowUs)
  if type(counted) ~= 'number' then return nil, counted.err .. ' (RPUSH)' end
  local held = counted - pushed
  local remaining
  if held + units > quota then
    takeBack(key, pushed)
    if denied and held == 0 then call('DEL', key) end
    -- More than one has to leave, for a batch or a quota that was lowered. What never fits has to wait for the whole window.
    local left = held + units - quota
    if units > quota then oldestUs = nil elseif left > 1 then oldestUs = timeAt(key, left - 1) end
    remaining = -1 - math.max(0, quota - held)
  else
    expireAfter(key, nowUs, windowUs)
    if denied and counted > units then takeBack(key, units) elseif denied then call('DEL', key) end
    remaining = quota - counted
  end
  if denied then return nil, denied end
  local ticket = policy.reserves and remaining >= 0 and string.format('%.0f', nowUs)
  return remaining, (oldestUs or nowUs) + windowUs - nowUs, ticket
end

function algorithm.undo(key, policy, units, remaining)
  units = tonumber(units)
  if remaining + units == policy.quota then
    must('DEL', key)
    return policy.quota, policy.windowUs
  end
  takeBack(key, units)
  return remaining + units
end
`,
    settle: `
function algorithm.settle(key, _, units, ticket)
  if units > 0 then call('LREM', key, -units, ticket) end
end
`,
    read: `
function algorithm.read(key, policy)
  local nowUs = readClockUs()
  if not nowUs then return denied end
  local oldestUs, failure = oldestAfter(key, nowUs - policy.windowUs)
  if failure then return failure end
  if not oldestUs then return 0, 0 end
  local used = call('LLEN', key)
  -- More than one has to leave.
  if type(used) == 'number' and used > policy.quota then oldestUs = timeAt(key, used - policy.quota) or oldestUs end
  return used, oldestUs + policy.windowUs - nowUs
end
`,
    /*
     * Keeps the newest times, twice as many as the quota of the largest plan. Up to a whole quota of them may be removed again, for
     * reservations that are refunded and for requests that Redis counted too late, and the rest must still fill the quota. Older times
     * affect no decision.
     */
    add: `
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
  must('LTRIM', key, -2 * quota, -1)
  expireAfter(key, newestUs, windowUs)
  if denied then call('DEL', key) end
end

function algorithm.add(key, policy, values)
  local nowUs = readClockUs()
  if not nowUs then return end
  local times = {}
  for place = 2, #values do times[place - 1] = nowUs - values[place] end
  insert(key, times, policy.windowUs, tonumber(values[1]))
end
`,
  },
}
