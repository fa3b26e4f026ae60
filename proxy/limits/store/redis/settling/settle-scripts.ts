import { bucketsLua } from '../buckets.ts'
import { callsLua } from '../checks/rights.ts'
import { script } from '../run-script.ts'

/**
 * Settles reservations: gives units back to the window that they were taken from, or charges missing units to the one that
 * runs. A fixed window is known by its end, the same to a few milliseconds whenever it is read, and differs from
 * that of any other window of the counter by about the window's length.
 *
 * KEYS   the counter of each reservation
 * ARGV   for each reservation the letter of its algorithm, as for the decision; its place, as the decision
 *        replied; the units to give back, or below 0 to add; and the window in milliseconds, or of a bucket how long it
 *        takes to get one unit back
 * reply  how many there were
 */
export const settleScript = script(`
${callsLua}
local nowUs
${bucketsLua}

local function readClock()
  if nowUs then return end
  local time = must('TIME')
  nowUs = not denied and time[1] * 1000000 + time[2] or nil
end

local function settleFixed(key, endsAtMs, units, windowMs)
  local left = call('PTTL', key)
  if type(left) ~= 'number' then return end
  if units < 0 then
    local counted = call('INCRBY', key, -units)
    if left < 0 and type(counted) == 'number' then must('PEXPIRE', key, windowMs) end
    return
  end
  readClock()
  if denied or left < 0 or math.abs(math.floor(nowUs / 1000) + left - endsAtMs) > math.min(windowMs / 2, 50) then return end
  local counted = call('DECRBY', key, units)
  if type(counted) == 'number' and counted <= 0 then call('DEL', key) end
end

-- Gives back only what the bucket would certainly hold without the reservation: not the time since, during which it may
-- have been full; or what of the reservation has not been refilled, if all that was given back meanwhile came before it.
local function settleBucket(key, place, amountUs)
  readClock()
  local bucket = not denied and readBucket(key)
  if not bucket then return end
  if amountUs < 0 then
    bucket.debtUs = bucket.debtUs - amountUs
  else
    local takenUs, untilUs, sinceUs, givenBackUs = place:match('^(%S+):(%S+):(%S+):(%S+)$')
    if not untilUs then return end
    local surelyUs = amountUs - (nowUs - takenUs)
    local leftUs = 0
    if tonumber(sinceUs) == bucket.sinceUs then leftUs = untilUs - (bucket.givenBackUs - givenBackUs) - nowUs end
    local backUs = math.min(amountUs, math.max(0, leftUs, surelyUs))
    bucket.debtUs = bucket.debtUs - backUs
    bucket.givenBackUs = bucket.givenBackUs + backUs
  end
  writeBucket(key, bucket)
end

for i, key in ipairs(KEYS) do
  local letter, place = ARGV[4 * i - 3]:byte(), ARGV[4 * i - 2]
  local units, windowMs = tonumber(ARGV[4 * i - 1]), tonumber(ARGV[4 * i])
  if letter == 67 then
    call('ZREM', key, place)
  elseif letter == 84 then
    settleBucket(key, place, units * windowMs * 1000)
  elseif letter == 83 then
    if units > 0 then call('LREM', key, -1, place) end
  else
    settleFixed(key, tonumber(place), units, windowMs)
  end
end
return #KEYS
`)

/**
 * Renews requests that are still in flight.
 *
 * KEYS   the counter of each request
 * ARGV   for how many milliseconds they are to count, then the name of each request
 * reply  how many there were
 */
export const renewScript = script(`
${callsLua}
local time = must('TIME')
if denied then return redis.error_reply(denied) end
local untilMs = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
for i, key in ipairs(KEYS) do
  if type(call('ZADD', key, untilMs, ARGV[i + 1])) == 'number' then must('PEXPIRE', key, ARGV[1]) end
end
return #KEYS
`)
