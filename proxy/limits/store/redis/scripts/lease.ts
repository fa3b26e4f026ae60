import { algorithms, lendsUnits } from '../../../algorithms/registry.ts'
import { MAX_LEASE_AGE_MS } from '../../leases/lease-store.ts'
import { script } from '../run-script.ts'
import { algorithmsLua } from './algorithms-lua.ts'
import { policiesLua } from './policy-arguments.ts'

const lending = algorithms.filter(lendsUnits)

/**
 * Lua for the recently leased units of a counter, which a second key holds for a reset. Its text has three numbers: a second of Redis's
 * clock, the units leased in that second, and the units leased in the second before. They cover at least the last `MAX_LEASE_AGE_MS`.
 */
const leasedLua = `
local function readSecond()
  local clockUs = readClockUs()
  return clockUs and math.floor(clockUs / ${MAX_LEASE_AGE_MS * 1000})
end

local function readLeased(key)
  local text = call('GET', key)
  local second = type(text) == 'string' and readSecond()
  if not second then return 0, 0 end
  local at, units, before = text:match('^(%d+) (%d+) (%d+)$')
  at, units, before = tonumber(at), tonumber(units), tonumber(before)
  -- The clock may have been set back.
  if at and at >= second then return units, before end
  if at and at == second - 1 then return 0, units end
  return 0, 0
end

local function noteLeased(key, units)
  local second = readSecond()
  if not second then return end
  local leased, before = readLeased(key)
  must('SET', key, string.format('%.0f %.0f %.0f', second, leased + units, before), 'PX', ${2 * MAX_LEASE_AGE_MS})
end
`

/**
 * Takes units ahead.
 *
 * KEYS   for each lease the counter, and the key of its recently leased units
 * ARGV   the policies, as `PolicyArguments` says; then for each lease the number of its policy, the units wanted, their maximum share of
 *        the remaining quota (10: a tenth), and the minimum number of units
 * reply  for each lease the units taken, or an error text if the counter could not be incremented; the units left after these; the
 *        microseconds until the window ends; the ticket; and the time on Redis's clock in microseconds
 */
export const takeLeasesScript = script(`${algorithmsLua(['read', 'decide'], lending)}
${policiesLua()}
${leasedLua}
local reply = {}
local function tell(units, left, resetUs, ticket)
  for _, value in ipairs({ units, left, resetUs, ticket, string.format('%.0f', readClockUs() or 0) }) do reply[#reply + 1] = value end
end

for i = 1, #KEYS, 2 do
  local policy = policies[nextArgument()]
  local wanted, share, min = tonumber(nextArgument()), tonumber(nextArgument()), tonumber(nextArgument())
  denied = nil
  policy.reserves = true
  local used, resetUs = policy.algorithm.read(KEYS[i], policy)
  if type(used) ~= 'number' then
    tell(used, 0, 0, '')
  else
    local units = math.min(wanted, math.floor((policy.quota - used) / share))
    if units < min then
      tell(0, 0, resetUs, '')
    else
      noteLeased(KEYS[i + 1], units)
      local left, ticket
      if not denied then left, resetUs, ticket = policy.algorithm.count(KEYS[i], policy, units) end
      if denied or not left then
        tell(denied or resetUs, 0, 0, '')
      elseif left < 0 then
        tell(0, 0, resetUs, '')
      else
        tell(units, left, resetUs, ticket)
      end
    end
  end
end
return reply
`)

/**
 * Gives back units that were leased and not used. Does nothing if the lease is so old that a reset may not have left its units counted.
 *
 * KEYS   the counter of each lease
 * ARGV   the policies, as `PolicyArguments` says; then for each lease the number of its policy, its ticket, the time at which it was taken,
 *        and the units to give back
 * reply  the number of leases
 */
export const giveBackLeasesScript = script(`${algorithmsLua('settle', lending)}
${policiesLua()}
for _, key in ipairs(KEYS) do
  local policy, ticket, takenUs, units = policies[nextArgument()], nextArgument(), nextArgument(), tonumber(nextArgument())
  local clockUs = readClockUs()
  denied = nil
  if clockUs and clockUs - takenUs <= ${MAX_LEASE_AGE_MS * 1000} then policy.algorithm.settle(key, policy, units, ticket) end
end
return #KEYS
`)

/**
 * Resets counters. Recently leased units stay counted, because they may be used later, but never more units than were counted.
 *
 * KEYS   for each counter its key, and the key of its recently leased units
 * ARGV   the policies, as `PolicyArguments` says; then for each counter the number of its policy
 * reply  the number of counters
 */
export const resetLeasedScript = script(`${algorithmsLua(['read', 'add'], lending)}
${policiesLua()}
${leasedLua}
for i = 1, #KEYS, 2 do
  local policy = policies[nextArgument()]
  local leased, before = readLeased(KEYS[i + 1])
  local used = leased + before > 0 and policy.algorithm.read(KEYS[i], policy)
  must('DEL', KEYS[i])
  local kept = type(used) == 'number' and math.min(used, leased + before) or 0
  if kept > 0 then policy.algorithm.add(KEYS[i], policy, { string.format('%.0f', kept), string.format('%.0f', policy.windowMs) }) end
  if denied then return redis.error_reply(denied) end
end
return #KEYS / 2
`)
