import { algorithmsLua, byAlgorithms } from './algorithms-lua.ts'
import { policiesLua } from './policy-arguments.ts'

/**
 * The first line of each of these scripts.
 *
 * @internal exported for tests
 */
export const ADDS_ONCE = '-- Adds requests admitted elsewhere, once.'

/**
 * Adds requests that were admitted without the counters to the counters: only once, no matter how often the script is sent.
 *
 * KEYS   a mark that records that the requests were added; then the counters
 * ARGV   how long the mark is kept, in milliseconds; the policies, as `PolicyArguments` says; then for each counter the number of
 *        its policy, the number of values that follow, and the values, from `addedValues` of its algorithm
 * reply  1 if the requests were added now, 0 if they had been added before
 *
 * If the user lacks a right, the counter in question is restored or deleted, so that no counter stays without an expiry, and the
 * script fails.
 */
export const addOnceScript = byAlgorithms(
  (chosen) => `${ADDS_ONCE}
if not redis.call('SET', KEYS[1], 1, 'PX', ARGV[1], 'NX') then return 0 end
${algorithmsLua('add', chosen)}
${policiesLua(2)}
for i = 2, #KEYS do
  local policy, values = policies[nextArgument()], {}
  for place = 1, tonumber(nextArgument()) do values[place] = nextArgument() end
  policy.algorithm.add(KEYS[i], policy, values)
  if denied then return redis.error_reply(denied) end
end
return 1
`,
)
