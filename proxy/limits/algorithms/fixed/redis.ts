import type { AlgorithmLua, RedisCounts } from '../redis-counts.ts'

/**
 * Lua functions that determine when windows in Redis end:
 *
 * - `readWindow(policy)`: called first; false or nil if nothing can be counted, and `denied` is then the reason
 * - `keepWindow(key, policy, running)`: makes sure that an incremented counter expires at the end of its window. Returns the milliseconds
 *   until then and, if charges get a ticket, that instant on Redis's clock. `running` is the counter's PTTL, below 0 without an expiry
 * - `beginWindow(key, policy, leftMs)`: sets that expiry. `leftMs` is given for requests admitted elsewhere
 * - `hasEnded(policy, leftMs)`: whether the window of requests admitted elsewhere has ended
 * - `toleranceOf(policy)`: how far apart two readings of the same end may be, in milliseconds
 */
type WindowClockLua = string

/** A window in Redis is an integer that holds the units counted and expires when the window ends. */
export function windowLua(clock: WindowClockLua): AlgorithmLua {
  return {
    common: `${clock}${takeBackLua}`,
    decide: countLua + undoLua,
    settle: settleLua,
    read: readLua,
    add: addLua,
  }
}

const takeBackLua = `
local function takeBack(key, units)
  if units == 1 then must('DECR', key) else must('DECRBY', key, units) end
end

local function increase(key, units)
  if units == 1 then return call('INCR', key) end
  return call('INCRBY', key, units)
end

-- Counts the units in a new window if that of the counter has ended: Redis keeps a key for the millisecond in which it expires, and
-- before 7.2 until the script ends. Returns the count, and the PTTL of the counter.
local function beginIfEnded(key, policy, units, counted, running)
  if running ~= 0 then return counted, running end
  must('DEL', key)
  -- The clock may have been read before the window ended.
  policy.border = nil
  if clockUs then
    clockUs = nil
    readClockUs()
  end
  if denied or not readWindow(policy) then return counted, running end
  return increase(key, units), -1
end
`

/**
 * Increments first, and decrements again if the quota is exceeded. An allowed request takes two commands. It is by far the most frequent
 * outcome, because gateways themselves refuse clients known to be over the limit.
 */
const countLua = `
function algorithm.count(key, policy, units)
  if not readWindow(policy) then return nil, denied end
  units = tonumber(units)
  local counted = increase(key, units)
  if type(counted) ~= 'number' then return nil, counted.err .. (units == 1 and ' (INCR)' or ' (INCRBY)') end
  local running = counted > units and must('PTTL', key) or -1
  counted, running = beginIfEnded(key, policy, units, counted, running)
  local left, ends
  if not denied then left, ends = keepWindow(key, policy, running) end
  if denied then
    if counted > units then takeBack(key, units) else call('DEL', key) end
    return nil, denied
  end
  if counted > policy.quota then
    -- No window begins with a request that does not fit.
    if counted == units then must('DEL', key) else takeBack(key, units) end
    return -1 - math.max(0, policy.quota - counted + units), left * 1000
  end
  -- As text, so that every digit survives.
  return policy.quota - counted, left * 1000, policy.reserves and string.format('%.0f', ends)
end
`

const undoLua = `
function algorithm.undo(key, policy, units, remaining)
  units = tonumber(units)
  if remaining + units == policy.quota then must('DEL', key) else takeBack(key, units) end
  return remaining + units
end
`

const settleLua = `
local function isOfSameWindow(ticket, running, policy)
  local maxLeft = ticket:match('^left (%S+)$')
  if maxLeft then return running <= tonumber(maxLeft) end
  local clockUs = readClockUs()
  return clockUs and math.abs(math.floor(clockUs / 1000) + running - ticket) <= toleranceOf(policy)
end

function algorithm.settle(key, policy, units, ticket)
  local running = readWindow(policy) and call('PTTL', key)
  if type(running) ~= 'number' then return end
  if units < 0 then
    local counted = increase(key, -units)
    if type(counted) ~= 'number' then return end
    counted, running = beginIfEnded(key, policy, -units, counted, running)
    if running < 0 then beginWindow(key, policy) end
    return
  end
  if running < 0 or not isOfSameWindow(ticket, running, policy) then return end
  local counted
  if units == 1 then counted = call('DECR', key) else counted = call('DECRBY', key, units) end
  if type(counted) == 'number' and counted <= 0 then call('DEL', key) end
end
`

const readLua = `
function algorithm.read(key)
  local counted = call('GET', key)
  if type(counted) == 'table' then return counted.err end
  if not counted then return 0, 0 end
  return tonumber(counted) or 'no number', math.max(0, call('PTTL', key)) * 1000
end
`

/** A running window keeps its end. */
const addLua = `
function algorithm.add(key, policy, values)
  local amount, leftMs = values[1], tonumber(values[2])
  if not readWindow(policy) or hasEnded(policy, leftMs) then return end
  local counted = call('INCRBY', key, amount)
  if type(counted) ~= 'number' then return end
  local running
  counted, running = beginIfEnded(key, policy, amount, counted, must('PTTL', key))
  local isLate = not denied and hasEnded(policy, leftMs)
  if not denied and not isLate and running < 0 then beginWindow(key, policy, leftMs) end
  if denied or isLate then
    if tostring(counted) == amount then call('DEL', key) else call('INCRBY', key, -amount) end
  end
end
`

/**
 * The ticket is the end of the window in milliseconds of Redis's clock, which is the same to within a few milliseconds whenever it is read.
 * Without a reservation, it is `left` and the milliseconds that the window had left: if another window has begun since, that one has more.
 */
export const windowTickets: Pick<RedisCounts, 'ticketOf' | 'addedValues'> = {
  ticketOf: (leftMs) => `left ${leftMs}`,
  addedValues: ({ counted, endsAtMs }, nowMs) => [String(counted[0]), String(Math.ceil(endsAtMs - nowMs))],
}

/** Successive windows of a counter end at least about a window's length apart, which is how tickets distinguish them. */
export const fixedInRedis: RedisCounts = {
  ...windowTickets,
  keyEnd: ({ windowMs, sharedWindowMs = windowMs }) => String(sharedWindowMs),
  commands: {
    always: [['INCR'], ['INCRBY', '1'], ['DECR'], ['PTTL'], ['PEXPIRE', '1000'], ['DEL']],
    reserving: [['TIME'], ['DECRBY', '1']],
  },
  lua: windowLua(`
local function readWindow(policy)
  return not policy.reserves or readClockUs()
end

local function beginWindow(key, policy, leftMs)
  must('PEXPIRE', key, leftMs or policy.windowMs)
end

local function keepWindow(key, policy, running)
  local left = running
  -- Longer than the window: the clock of Redis has been set back since.
  if running < 0 or running > policy.windowMs then
    left = policy.windowMs
    beginWindow(key, policy)
  end
  return left, policy.reserves and math.floor(readClockUs() / 1000) + left
end

local function hasEnded() return false end

local function toleranceOf(policy)
  return math.min(policy.windowMs / 2, 50)
end
`),
}
