import { TRY_AGAIN_MS } from '../../algorithms/concurrency/counts.ts'
import { bucketsLua, ROUNDING_US } from './buckets.ts'
import { callsLua } from './checks/rights.ts'
import { script } from './run-script.ts'
import { slidingLua } from './sliding.ts'

/**
 * Decides any number of requests, each of one or several charges, each request atomically.
 *
 * KEYS   the counter of each charge, request by request
 * ARGV   for each charge its quota and its window in milliseconds; then two strings with a letter for each charge, then
 *        for each algorithm in upper case the units to reserve, or the name of the request in flight. The letters are
 *        - of the mode: `E` enforced, `S` shadow, in lower case where the charge belongs to the same request as the one before
 *        - of the algorithm: `f` fixed, `s` sliding, `F` and `S` where units are reserved
 *        - `T` a token bucket, whose quota and window are what a full one holds and how long it takes to be full
 *        - `C` requests in flight, whose window is how long one is believed without a renewal
 * reply  for each charge the remaining quota, or -1 if the quota is exceeded, and how long until more is left, in
 *        milliseconds for a fixed window and in microseconds for a sliding one and a bucket; in place of the first charge's
 *        remainder the error text, where Redis has refused to touch one of the request's counters. Behind all these,
 *        where a letter is not `f`, the time by which it was counted, in microseconds; and for each letter in upper
 *        case where to find the reservation: when the fixed window ends, in milliseconds; the time in the sliding one; or
 *        when it was taken out of the bucket, when it will have run out, since when that is not full, and the units
 *        given back since then
 *
 * A counter is counted up first and set right after if that was too much: two commands a charge for allowed requests,
 * and three where the window slides. That is the most frequent answer by far, since the gateways themselves refuse
 * clients known to be over the limit. Nothing else runs in between, so nobody ever sees the wrong count. `pcall`, because
 * one broken counter is no reason to fail the other requests. Where the user lacks a right, the request fails: what it
 * has counted is taken back, and no counter stays without an expiry.
 */
export const decideScript = script(`
${callsLua}
${slidingLua}
local charges = #KEYS
local modes = ARGV[2 * charges + 1]
local algorithms = ARGV[2 * charges + 2]
local nowUs = algorithms:find('[^f]') and readClockUs()
local clockFailure = denied
local reply = {}
-- The charges that are reservations, and the argument that each of them has behind the others.
local places = {}
local extra = {}
local at = algorithms:find('%u')
while at do
  places[#places + 1] = at
  extra[at] = ARGV[2 * charges + 2 + #places]
  at = algorithms:find('%u', at + 1)
end

${bucketsLua}
local function isBucket(i) return algorithms:byte(i) == 84 end
local function isSliding(i) return algorithms:byte(i) == 115 or algorithms:byte(i) == 83 end
local function isInFlight(i) return algorithms:byte(i) == 67 end
local function unitsOf(i) return extra[i] and not isInFlight(i) and tonumber(extra[i]) or 1 end

local function takeBack(key, units)
  if units == 1 then must('DECR', key) else must('DECRBY', key, units) end
end

-- All of these count and note the reply. They return an error text where that is impossible.
local function countFixed(i)
  if clockFailure and extra[i] then return clockFailure end
  local key, quota, units = KEYS[i], tonumber(ARGV[2 * i - 1]), unitsOf(i)
  local counted
  if units == 1 then counted = call('INCR', key) else counted = call('INCRBY', key, units) end
  if type(counted) ~= 'number' then return counted.err .. (units == 1 and ' (INCR)' or ' (INCRBY)') end
  local left = counted > units and must('PTTL', key) or -1
  -- Longer than the window: the clock of Redis has been set back since.
  if not denied and (left < 0 or left > tonumber(ARGV[2 * i])) then
    left = tonumber(ARGV[2 * i])
    must('PEXPIRE', key, ARGV[2 * i])
  end
  if denied then
    if counted > units then takeBack(key, units) else call('DEL', key) end
    return denied
  end
  reply[2 * i] = left
  if counted > quota then
    takeBack(key, units)
    reply[2 * i - 1] = -1
  else
    reply[2 * i - 1] = quota - counted
  end
  return denied
end

local function countSliding(i)
  if clockFailure then return clockFailure end
  local key, quota, windowUs = KEYS[i], tonumber(ARGV[2 * i - 1]), ARGV[2 * i] * 1000
  local oldestUs, failure = oldestAfter(key, nowUs - windowUs)
  if failure then return failure end
  if oldestUs and oldestUs > nowUs then
    oldestUs = bringBack(key, nowUs)
    expireAfter(key, nowUs, windowUs)
  end
  local counted = call('RPUSH', key, nowUs)
  if type(counted) ~= 'number' then return counted.err .. ' (RPUSH)' end
  if counted > quota then
    must('RPOP', key)
    reply[2 * i - 1] = -1
    -- A quota that was lowered: more than one has to leave.
    if counted > quota + 1 then oldestUs = timeAt(key, counted - 1 - quota) end
  else
    expireAfter(key, nowUs, windowUs)
    if denied then call(counted > 1 and 'RPOP' or 'DEL', key) end
    reply[2 * i - 1] = quota - counted
  end
  if denied then return denied end
  reply[2 * i] = (oldestUs or nowUs) + windowUs - nowUs
end

local function tellBucket(i, bucket)
  local quota, windowUs = tonumber(ARGV[2 * i - 1]), ARGV[2 * i] * 1000
  local unitUs = windowUs / quota
  local left = math.max(0, math.floor((windowUs - bucket.debtUs) / unitUs + 1e-6))
  reply[2 * i - 1] = left
  reply[2 * i] = left >= quota and windowUs or math.ceil((left + 1) * unitUs - (windowUs - bucket.debtUs))
end

local function countInFlight(i)
  if clockFailure then return clockFailure end
  local key, quota, leaseMs = KEYS[i], tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local nowMs = math.floor(nowUs / 1000)
  local gone = call('ZREMRANGEBYSCORE', key, '-inf', nowMs)
  if type(gone) ~= 'number' then return gone.err .. ' (ZREMRANGEBYSCORE)' end
  local held = must('ZCARD', key)
  if denied then return denied end
  reply[2 * i] = ${TRY_AGAIN_MS}
  reply[2 * i - 1] = -1
  if held < quota then
    must('ZADD', key, nowMs + leaseMs, extra[i])
    must('PEXPIRE', key, leaseMs)
    if denied then call('ZREM', key, extra[i]) end
    reply[2 * i - 1] = quota - held - 1
  end
  return denied
end

-- What the buckets were before, and where to find what was taken out of them.
local buckets, tickets = {}, {}

local function countBucket(i)
  if clockFailure then return clockFailure end
  local quota, windowUs = tonumber(ARGV[2 * i - 1]), ARGV[2 * i] * 1000
  local unitUs = windowUs / quota
  local bucket, failure = readBucket(KEYS[i])
  if failure then return failure end
  buckets[i] = { debtUs = bucket.debtUs, sinceUs = bucket.sinceUs, givenBackUs = bucket.givenBackUs }
  bucket.debtUs = bucket.debtUs + unitsOf(i) * unitUs
  if bucket.debtUs > windowUs + ${ROUNDING_US} then
    reply[2 * i - 1] = -1
    reply[2 * i] = math.ceil(bucket.debtUs - windowUs)
    if not bucket.isAhead then return nil end
    writeBucket(KEYS[i], buckets[i])
    return denied
  end
  writeBucket(KEYS[i], bucket)
  tellBucket(i, bucket)
  tickets[i] = string.format('%.0f:%.17g:%.0f:%.17g', nowUs, nowUs + bucket.debtUs, bucket.sinceUs, bucket.givenBackUs)
  return denied
end

-- Takes back what the charges from first to last have counted; of those exceeded nothing is.
local function undo(first, last)
  for i = first, last do
    local remaining = reply[2 * i - 1]
    if remaining >= 0 then
      local units = unitsOf(i)
      local isOnly = remaining + units == tonumber(ARGV[2 * i - 1])
      if isInFlight(i) then
        must('ZREM', KEYS[i], extra[i])
      elseif isBucket(i) then
        writeBucket(KEYS[i], buckets[i])
        tellBucket(i, buckets[i])
        remaining = reply[2 * i - 1] - units
      elseif isOnly then
        must('DEL', KEYS[i])
        reply[2 * i] = ARGV[2 * i] * (isSliding(i) and 1000 or 1)
      elseif isSliding(i) then
        must('RPOP', KEYS[i])
      else
        takeBack(KEYS[i], units)
      end
      reply[2 * i - 1] = remaining + units
    end
  end
end

local i = 1
while i <= charges do
  local first = i
  local refused = false
  local failure
  denied = nil
  repeat
    local mode = modes:byte(i)
    local count = isSliding(i) and countSliding or isInFlight(i) and countInFlight or isBucket(i) and countBucket or
      countFixed
    failure = count(i)
    refused = refused or reply[2 * i - 1] == -1 and (mode == 69 or mode == 101)
    i = i + 1
  until failure or i > charges or modes:byte(i) < 97
  if failure then
    undo(first, i - 2)
  elseif refused then
    undo(first, i - 1)
  end
  failure = failure or denied
  if failure then
    while i <= charges and modes:byte(i) >= 97 do i = i + 1 end
    for charge = first, i - 1 do
      reply[2 * charge - 1] = failure
      reply[2 * charge] = 0
    end
  end
end
if not nowUs then return reply end
reply[2 * charges + 1] = nowUs
-- As text, since it is to be found again to the last digit.
for place, i in ipairs(places) do
  local endsAtMs = math.floor(nowUs / 1000) + reply[2 * i]
  reply[2 * charges + 1 + place] = isInFlight(i) and extra[i] or isBucket(i) and (tickets[i] or '') or
    string.format('%.0f', isSliding(i) and nowUs or endsAtMs)
end
return reply
`)

/**
 * Takes back one from a counter whose window had so long to go when it was counted. Where the window has ended since,
 * and another has begun, more is left of that: then nothing is taken.
 *
 * KEYS   the counter
 * ARGV   the milliseconds that were left of its window
 */
export const giveBackScript = script(`
local left = redis.call('PTTL', KEYS[1])
if left < 0 or left > tonumber(ARGV[1]) then return 0 end
if redis.call('DECR', KEYS[1]) < 1 then redis.call('DEL', KEYS[1]) end
return 1
`)
