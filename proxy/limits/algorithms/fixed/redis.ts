import type { AlgorithmLua, RedisCounts } from '../redis-counts.ts'

/**
 * Lua that says when windows in Redis end:
 *
 * - `readWindow(policy)`: called first; false if nothing can be counted, as `denied` says
 * - `keepWindow(key, policy, running)`: sees to it that a counter which was counted up has its window's end, and returns the milliseconds
 *   until then and, where charges get a ticket, that instant by Redis's clock. `running` is its expiry, below 0 without one
 * - `beginWindow(key, policy, leftMs)`: sets that end. `leftMs` is given for requests admitted elsewhere
 * - `hasEnded(policy, leftMs)`: whether the window of such requests is over
 * - `toleranceOf(policy)`: how far apart two readings of the same end may be, in milliseconds
 */
type WindowClockLua = string

/** A window in Redis is an integer, the units counted, that expires when the window ends. */
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
`

/**
 * Counted up first and taken back if that was too much: two commands for an allowed request, the most frequent outcome by far, since
 * the gateways themselves refuse clients known to be over the limit.
 */
const countLua = `
function algorithm.count(key, policy, units)
  if not readWindow(policy) then return nil, denied end
  units = tonumber(units)
  local counted
  if units == 1 then counted = call('INCR', key) else counted = call('INCRBY', key, units) end
  if type(counted) ~= 'number' then return nil, counted.err .. (units == 1 and ' (INCR)' or ' (INCRBY)') end
  local running = counted > units and must('PTTL', key) or -1
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
    local counted = call('INCRBY', key, -units)
    if running < 0 and type(counted) == 'number' then beginWindow(key, policy) end
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
  local running = must('PTTL', key)
  if not denied and running < 0 then beginWindow(key, policy, leftMs) end
  if denied then
    if tostring(counted) == amount then call('DEL', key) else call('INCRBY', key, -amount) end
  end
end
`

/**
 * The ticket is when the window ends, in milliseconds of Redis's clock: the same to a few milliseconds whenever it is read. Without a
 * reservation it is `left` and how many milliseconds the window had to go: where another has begun since, more is left of that.
 */
export const windowTickets: Pick<RedisCounts, 'ticketOf' | 'addedValues'> = {
  ticketOf: (leftMs) => `left ${leftMs}`,
  addedValues: ({ counted, endsAtMs }, nowMs) => [String(counted[0]), String(Math.ceil(endsAtMs - nowMs))],
}

/** The end of a window differs from that of any other one of its counter by about the window's length. */
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
