import type { RedisCounts } from '../redis-counts.ts'

/**
 * A fixed window in Redis is an integer, the units counted, that expires when the window ends.
 *
 * A counter is counted up first and set right after if that was too much: two commands for an allowed request, the most frequent
 * outcome by far, since the gateways themselves refuse clients known to be over the limit.
 *
 * The ticket is when the window ends, in milliseconds of Redis's clock, the same to a few milliseconds whenever it is read, and
 * differs from that of any other window of the counter by about the window's length. Without a reservation it is `left` and how
 * many milliseconds the window had to go: where another has begun since, more is left of that.
 */
export const fixedInRedis: RedisCounts = {
  keyEnd: ({ windowMs, sharedWindowMs = windowMs }) => String(sharedWindowMs),
  commands: {
    always: [['INCR'], ['INCRBY', '1'], ['DECR'], ['PTTL'], ['PEXPIRE', '1000'], ['DEL']],
    reserving: [['TIME'], ['DECRBY', '1']],
  },
  ticketOf: (leftMs) => `left ${leftMs}`,
  addedValues: ({ counted, endsAtMs }, nowMs) => [String(counted[0]), String(Math.ceil(endsAtMs - nowMs))],
  lua: {
    decide: `
local function takeBack(key, units)
  if units == 1 then must('DECR', key) else must('DECRBY', key, units) end
end

function algorithm.count(key, policy, units)
  if policy.reserves and not readClockUs() then return nil, denied end
  units = tonumber(units)
  local counted
  if units == 1 then counted = call('INCR', key) else counted = call('INCRBY', key, units) end
  if type(counted) ~= 'number' then return nil, counted.err .. (units == 1 and ' (INCR)' or ' (INCRBY)') end
  local left = counted > units and must('PTTL', key) or -1
  -- Longer than the window: the clock of Redis has been set back since.
  if not denied and (left < 0 or left > policy.windowMs) then
    left = policy.windowMs
    must('PEXPIRE', key, left)
  end
  if denied then
    if counted > units then takeBack(key, units) else call('DEL', key) end
    return nil, denied
  end
  if counted > policy.quota then
    takeBack(key, units)
    return -1, left * 1000
  end
  -- As text, so that every digit survives.
  local ticket = policy.reserves and string.format('%.0f', math.floor(readClockUs() / 1000) + left)
  return policy.quota - counted, left * 1000, ticket
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
local function isOfSameWindow(ticket, left, policy)
  local mostLeft = ticket:match('^left (%S+)$')
  if mostLeft then return left <= tonumber(mostLeft) end
  local clockUs = readClockUs()
  if not clockUs then return false end
  return math.abs(math.floor(clockUs / 1000) + left - ticket) <= math.min(policy.windowMs / 2, 50)
end

function algorithm.settle(key, policy, units, ticket)
  local left = call('PTTL', key)
  if type(left) ~= 'number' then return end
  if units < 0 then
    local counted = call('INCRBY', key, -units)
    if left < 0 and type(counted) == 'number' then must('PEXPIRE', key, policy.windowMs) end
    return
  end
  if left < 0 or not isOfSameWindow(ticket, left, policy) then return end
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
    // A running window keeps its end.
    add: `
function algorithm.add(key, policy, values)
  local amount, leftMs = values[1], values[2]
  local counted = call('INCRBY', key, amount)
  if type(counted) ~= 'number' then return end
  local left = must('PTTL', key)
  if not denied and left < 0 then must('PEXPIRE', key, leftMs) end
  if denied then
    if tostring(counted) == amount then call('DEL', key) else call('INCRBY', key, -amount) end
  end
end
`,
  },
}
