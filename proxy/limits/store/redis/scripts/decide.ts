import type { Algorithm } from '../../../algorithms/algorithm.ts'
import { algorithms } from '../../../algorithms/registry.ts'
import { algorithmsLua, byAlgorithms } from './algorithms-lua.ts'
import { planLua } from './plans-lua.ts'
import { policiesLua } from './policy-arguments.ts'
import type { RedisScript } from '../run-script.ts'

/**
 * Decides any number of requests, each with one or several charges. Each request is decided atomically.
 *
 * KEYS   the counter of each charge, request by request
 * ARGV   the policies, as `PolicyArguments` says; then for each request the number of its charges, and for each charge the
 *        number of its policy and, if the policy takes units, the units to reserve, or the name of the request in flight
 * reply  for each charge the remaining quota or, if the charge exceeds it, -1 minus the remaining quota; and the microseconds until more
 *        units are available. If Redis refused to touch one of the request's counters, the error text replaces the remaining quota of
 *        each of its charges. If the clock was read, the time of counting follows, in microseconds; and for each charge that takes
 *        units its ticket, empty if nothing was counted
 *
 * Nothing else runs in between, so no client ever sees a count that is about to be taken back. A broken counter does not fail the
 * other requests. If the user lacks a right, the request fails: its counts are taken back, and no counter stays without an expiry.
 */
const decideLua = (chosen: readonly Algorithm[], plan?: typeof planLua): string =>
  `${algorithmsLua('decide', chosen)}
${policiesLua(1, plan?.policies)}${plan?.read ?? ''}
local reply, tickets = {}, {}
-- By charge: its policy, its units, and the state for taking it back.
local policyOf, unitsOf, stateOf = {}, {}, {}

${undoLua(plan)}
local i = 0
while i < ${plan?.chargeCount ?? '#KEYS'} do
  local first, counted, refused = i + 1, 0, false
  local failure
  denied = nil
${plan?.begin ?? ''}  for _ = 1, tonumber(nextArgument()) do
    i = i + 1
    local policy = policies[nextArgument()]
    local units = 1
    local ticket
    if policy.reserves then units = nextArgument() end
${plan?.choose ?? ''}    policyOf[i], unitsOf[i] = policy, units
    if not failure then
      local left, resetUs
${plan?.count ?? countLua}      failure = denied or not left and resetUs
      if not failure then
        counted = i
        reply[2 * i - 1], reply[2 * i] = left, resetUs
        refused = refused or left < 0 and policy.enforces
      end
    end
    if policy.reserves then tickets[#tickets + 1] = ticket or '' end
  end
  if refused or failure then undo(first, counted) end
  failure = failure or denied
  if failure then
    for charge = first, i do
      reply[2 * charge - 1], reply[2 * charge] = failure, 0
    end
  end
end
${plan?.reply ?? replyLua}
`

function undoLua(plan?: typeof planLua): string {
  return `-- Takes back what the charges from first to last have counted; of those exceeded nothing is.
local function undo(first, last)
${plan?.undoFirst ?? ''}  for i = first, last do
${plan?.undo ?? ''}    local remaining = reply[2 * i - 1]
    if remaining >= 0 then
      local policy = policyOf[i]
${plan?.undoPlan ?? ''}      local left, resetUs = policy.algorithm.undo(KEYS[i], policy, unitsOf[i], remaining, stateOf[i])
      reply[2 * i - 1] = left
      reply[2 * i] = resetUs or reply[2 * i]
${plan?.undone ?? ''}    end
  end
end
`
}

/** Counts the charge `i`. */
const countLua = `      left, resetUs, ticket, stateOf[i] = policy.algorithm.count(KEYS[i], policy, units)
`

const replyLua = `if not clockUs then return reply end
reply[2 * #KEYS + 1] = clockUs
for place, ticket in ipairs(tickets) do reply[2 * #KEYS + 1 + place] = ticket end
return reply`

const decideWith = byAlgorithms((chosen) => decideLua(chosen))
const decideByPlansWith = byAlgorithms((chosen) => decideLua(chosen, planLua))

const all = decideWith(new Set(algorithms))

/**
 * Returns the script for policies of these algorithms: there is one for each single algorithm, and one for all algorithms together.
 *
 * @param used never empty
 */
export function decideScript(used: ReadonlySet<Algorithm>): RedisScript {
  return used.size === 1 ? decideWith(used) : all
}

/**
 * Returns the script for policies that read the plans of clients. KEYS and ARGV are those of `planLua`; the places of the plans are at the
 * end of the reply.
 */
export function decideByPlansScript(used: ReadonlySet<Algorithm>): RedisScript {
  return decideByPlansWith(used.size === 1 ? used : new Set(algorithms))
}
