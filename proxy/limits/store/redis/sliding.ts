/**
 * The part of Redis's scripts that knows sliding windows. It needs `callsLua`.
 *
 * A sliding window is a list of the times, in microseconds of Redis's clock, at which its client was admitted, oldest
 * first; equal times stand beside each other. A time is in the window until exactly the window's length later, and has
 * left at that instant: at t those in (t - window, t] count. Those that have left are taken out when the client asks
 * again, and the key expires when the last one leaves.
 *
 * How many are to go is found in steps of twice the size, then by halving: mostly it is one, but thousands must not
 * cost thousands of commands. Should Redis's clock have been set back, then the list is not in order; but whatever has
 * left was admitted later than the times before it, which must go too. A list that begins in the future is taken to be
 * of now, so that it does not count for as long as the clock was set back.
 */
export const slidingLua = `
local function readClockUs()
  local time = must('TIME')
  if denied then return nil end
  return time[1] * 1000000 + time[2]
end

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

-- Takes all times to be of now. Returns the oldest after that.
local function bringBack(key, nowUs)
  local count = call('LLEN', key)
  if type(count) ~= 'number' then return timeAt(key, 0) end
  for _ = 1, count do must('RPUSH', key, nowUs) end
  must('LTRIM', key, count, -1)
  return nowUs
end

-- Lets the key go once the time has left its window, and not before: keys expire at whole milliseconds.
local function expireAfter(key, timeUs, windowUs)
  must('PEXPIREAT', key, math.ceil((timeUs + windowUs) / 1000))
end
`
