import { windowLua, windowTickets } from '../fixed/redis.ts'
import type { RedisCounts } from '../redis-counts.ts'
import { calendarWindows } from './calendar-windows.ts'

/**
 * Windows end at the calendar's borders. The gateway sends the borders around its own time, and Redis's clock selects the current window,
 * so that gateways whose clocks differ count in the same window.
 *
 * The key contains the unit but not the time zone: if the time zone is changed, requests stay counted, and the running window ends at its
 * new border.
 */
export const calendarInRedis: RedisCounts = {
  ...windowTickets,
  keyEnd: ({ calendar }) => calendar?.unit ?? '',
  commands: {
    always: [
      ['TIME'],
      ['INCR'],
      ['INCRBY', '1'],
      ['DECR'],
      ['DECRBY', '1'],
      ['PTTL'],
      // In the far future, so that the test does not delete its key.
      ['PEXPIREAT', '9999999999999'],
      ['DEL'],
    ],
  },
  windowText: ({ calendar }, epochMs) => (calendar ? calendarWindows(calendar).bordersAround(epochMs) : ''),
  lua: windowLua(`
-- Finds the border at which the window ends, and the border before.
local function readWindow(policy)
  local clockUs = readClockUs()
  if not clockUs or policy.border then return clockUs end
  local clockMs = math.floor(clockUs / 1000)
  local windowMs = policy.windowMs
  local border, last
  for text in (policy.window:match(' (.+)$') or policy.window):gmatch('%d+') do
    border = tonumber(text)
    if border > clockMs then break end
    last, border = border, nil
  end
  -- The clock of the gateway is off by more than a window: borders at the usual distance.
  if not border then
    local windows = math.floor((clockMs - last) / windowMs)
    last, border = last + windowMs * windows, last + windowMs * (windows + 1)
  elseif not last then
    border = border - windowMs * (math.ceil((border - clockMs) / windowMs) - 1)
    last = border - windowMs
  end
  policy.border, policy.last, policy.left = border, last, border - clockMs
  return clockUs
end

-- Keys expire by the clock as it was when the script began.
local function toleranceOf(policy)
  return math.min(policy.windowMs / 4, 2000)
end

local function beginWindow(key, policy)
  must('PEXPIREAT', key, string.format('%.0f', policy.border))
end

local function keepWindow(key, policy, running)
  local border, left, last = policy.border, policy.left, policy.last
  -- The window has ended since the script began, and the request came before.
  if running >= 0 and math.abs(running - left + border - last) <= toleranceOf(policy) then return running, last end
  -- Another border: the clock of Redis has been set since, or the time zone is another one.
  if running < 0 or math.abs(running - left) > 50 then beginWindow(key, policy) end
  return left, border
end

-- Requests of a window that has ended by Redis's clock are not of the one that has begun.
local function hasEnded(policy, leftMs)
  return policy.left - leftMs > policy.windowMs / 2
end
`),
}
