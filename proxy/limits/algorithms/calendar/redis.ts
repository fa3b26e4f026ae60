import type { RedisCounts } from '../redis-counts.ts'
import { calendarWindows } from './calendar-windows.ts'

/**
 * A calendar window in Redis is an integer, the units counted, that expires at the window's border. The gateway sends the borders around
 * its own time, and Redis's clock says which window it is, so that gateways whose clocks differ count in the same one.
 *
 * The key says the unit and not the time zone: where that is changed, requests stay counted, and the running window ends at its new
 * border. The ticket is the border, in milliseconds of Redis's clock. Without a reservation it is `left` and how many milliseconds
 * the window had to go, as with fixed windows.
 */
export const calendarInRedis: RedisCounts = {
  keyEnd: ({ calendar }) => calendar?.unit ?? '',
  commands: {
    always: [
      ['TIME'],
      ['INCR'],
      ['INCRBY', '1'],
      ['DECR'],
      ['DECRBY', '1'],
      ['PTTL'],
      // In the far future, as the key is tried on.
      ['PEXPIREAT', '9999999999999'],
      ['DEL'],
    ],
  },
  windowText: ({ calendar }, epochMs) => (calendar ? calendarWindows(calendar).bordersAround(epochMs) : ''),
  ticketOf: (leftMs) => `left ${leftMs}`,
  addedValues: ({ counted, endsAtMs }, nowMs) => [String(counted[0]), String(Math.ceil(endsAtMs - nowMs))],
  lua: {
    common: `
-- The border at which the window ends, the milliseconds until then, and the border before; nil if the clock may not be read.
local function findBorder(policy)
  local clockUs = readClockUs()
  if not clockUs then return nil end
  local clockMs = math.floor(clockUs / 1000)
  if not policy.border then
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
    policy.border, policy.last = border, last
  end
  return policy.border, policy.border - clockMs, policy.last
end

-- How far apart two instants may be that are the same border: keys expire by the clock as it was when the script began.
local function toleranceOf(policy)
  return math.min(policy.windowMs / 4, 2000)
end

local function takeBack(key, units)
  if units == 1 then must('DECR', key) else must('DECRBY', key, units) end
end

local function expireAt(key, border)
  must('PEXPIREAT', key, string.format('%.0f', border))
end
`,
    decide: `
function algorithm.count(key, policy, units)
  local border, left, last = findBorder(policy)
  if not border then return nil, denied end
  units = tonumber(units)
  local counted
  if units == 1 then counted = call('INCR', key) else counted = call('INCRBY', key, units) end
  if type(counted) ~= 'number' then return nil, counted.err .. (units == 1 and ' (INCR)' or ' (INCRBY)') end
  local running = counted > units and must('PTTL', key) or -1
  if not denied then
    if running >= 0 and math.abs(running - left + border - last) <= toleranceOf(policy) then
      -- The window has ended since the script began, and the request came before.
      border, left = last, running
    elseif running < 0 or math.abs(running - left) > 50 then
      -- Another border: the clock of Redis has been set since, or the time zone is another one.
      expireAt(key, border)
    end
  end
  if denied then
    if counted > units then takeBack(key, units) else call('DEL', key) end
    return nil, denied
  end
  if counted > policy.quota then
    takeBack(key, units)
    return -1, left * 1000
  end
  return policy.quota - counted, left * 1000, policy.reserves and string.format('%.0f', border)
end

function algorithm.undo(key, policy, units, remaining)
  units = tonumber(units)
  if remaining + units == policy.quota then must('DEL', key) else takeBack(key, units) end
  return remaining + units
end
`,
    settle: `
local function isOfSameWindow(ticket, running, policy)
  local mostLeft = ticket:match('^left (%S+)$')
  if mostLeft then return running <= tonumber(mostLeft) end
  local border, left = findBorder(policy)
  return math.abs(border - left + running - ticket) <= toleranceOf(policy)
end

function algorithm.settle(key, policy, units, ticket)
  local border = findBorder(policy)
  local running = call('PTTL', key)
  if not border or type(running) ~= 'number' then return end
  if units < 0 then
    local counted = call('INCRBY', key, -units)
    if running < 0 and type(counted) == 'number' then expireAt(key, border) end
    return
  end
  if running < 0 or not isOfSameWindow(ticket, running, policy) then return end
  local counted
  if units == 1 then counted = call('DECR', key) else counted = call('DECRBY', key, units) end
  if type(counted) == 'number' and counted <= 0 then call('DEL', key) end
end
`,
    read: `
function algorithm.read(key)
  local counted = call('GET', key)
  if type(counted) == 'table' then return counted.err end
  if not counted then return 0, 0 end
  return tonumber(counted) or 'no number', math.max(0, call('PTTL', key)) * 1000
end
`,
    // Requests of a window that has ended by Redis's clock are not of the one that has begun.
    add: `
function algorithm.add(key, policy, values)
  local amount, leftMs = values[1], tonumber(values[2])
  local border, left = findBorder(policy)
  if not border or left - leftMs > policy.windowMs / 2 then return end
  local counted = call('INCRBY', key, amount)
  if type(counted) ~= 'number' then return end
  local running = must('PTTL', key)
  if not denied and running < 0 then expireAt(key, border) end
  if denied then
    if tostring(counted) == amount then call('DEL', key) else call('INCRBY', key, -amount) end
  end
end
`,
  },
}
