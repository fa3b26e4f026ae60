import { algorithmsLua } from './algorithms-lua.ts'
import { policiesLua } from './policy-arguments.ts'
import { script } from '../run-script.ts'

/**
 * Reads counters for operators.
 *
 * KEYS   the counters
 * ARGV   the policies, as `PolicyArguments` says; then for each counter the number of its policy
 * reply  for each counter the used units, or an error text if the key is not a counter; and the microseconds until more units are
 *        available, 0 if nothing counts
 */
export const readScript = script(`${algorithmsLua('read')}
${policiesLua()}
local reply = {}
for i, key in ipairs(KEYS) do
  local policy = policies[nextArgument()]
  local used, resetUs = policy.algorithm.read(key, policy)
  reply[2 * i - 1], reply[2 * i] = used, resetUs or 0
end
return reply
`)
