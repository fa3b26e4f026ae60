import { algorithms } from '../../../algorithms/registry.ts'
import { algorithmsLua } from './algorithms-lua.ts'
import { policiesLua } from './policy-arguments.ts'
import { script } from '../run-script.ts'

/**
 * Settles reservations: refunds units to where they were taken from, or charges missing units.
 *
 * KEYS   the counter of each reservation
 * ARGV   the policies, as `PolicyArguments` says; then for each reservation the number of its policy, its ticket, and the units
 *        to give back; negative units are added
 * reply  the number of reservations, or the error for which a request in flight has not ended
 */
export const settleScript = script(`${algorithmsLua('settle')}
${policiesLua()}
local refused
for _, key in ipairs(KEYS) do
  local policy, ticket, units = policies[nextArgument()], nextArgument(), tonumber(nextArgument())
  denied = nil
  refused = policy.algorithm.settle(key, policy, units, ticket) or refused
end
return refused or #KEYS
`)

/**
 * Renews requests that are still in flight.
 *
 * KEYS   the counter of each request
 * ARGV   the policies, as `PolicyArguments` says; then for each request the number of its policy, and its ticket
 * reply  the number of requests
 */
export const renewScript = script(`${algorithmsLua(
  'renew',
  algorithms.filter(({ redis }) => redis.lua.renew !== undefined),
)}
${policiesLua()}
for _, key in ipairs(KEYS) do
  local policy, ticket = policies[nextArgument()], nextArgument()
  policy.algorithm.renew(key, policy, ticket)
end
if denied then return redis.error_reply(denied) end
return #KEYS
`)
