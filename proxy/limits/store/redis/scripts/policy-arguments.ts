import type { Algorithm } from '../../../algorithms/algorithm.ts'
import type { RedisPolicy } from '../keys.ts'

/**
 * The policies of a command. Each is described once, no matter how many of its counters the command uses.
 *
 * ARGV   the number of policies; for each policy its algorithm; `enforce` if it refuses requests, otherwise `shadow`; its quota; its
 *        window in milliseconds, followed by the text that its algorithm adds; and the milliseconds for which requests may wait, `units`
 *        if they may not wait but charges come with the units to reserve, otherwise `one`
 */
export class PolicyArguments {
  readonly #numbers = new Map<RedisPolicy, string>()
  /** The arguments of each policy, and its plans. */
  readonly #described: { readonly policy: readonly string[]; readonly plans: string }[] = []
  /** The algorithms of these policies. */
  readonly algorithms = new Set<Algorithm>()

  /** Returns the number, from 1, by which the other arguments refer to the policy. */
  numberOf(policy: RedisPolicy): string {
    const known = this.#numbers.get(policy)
    if (known !== undefined) return known
    const number = String(this.#numbers.size + 1)
    this.#numbers.set(policy, number)
    this.#described.push({ policy: policy.described, plans: policy.plans ?? '' })
    this.algorithms.add(policy.algorithm)
    return number
  }

  /** The arguments that describe the policies. */
  toArguments(): string[] {
    return [String(this.#described.length), ...this.#described.flatMap(({ policy }) => policy)]
  }

  /** The arguments for scripts that read the plans of clients. Each policy is followed by its plans, empty if it has no plans. */
  toArgumentsWithPlans(): string[] {
    return [
      String(this.#described.length),
      ...this.#described.flatMap(({ policy, plans }) => [...policy, plans]),
    ]
  }
}

/**
 * Returns Lua that reads these arguments. It defines `policies`, by their numbers, and `nextArgument()`, which returns the arguments after
 * the policies, one by one. It needs `algorithmsLua`.
 *
 * @param first the index of the first of these arguments, from 1
 * @param planLua Lua that reads the plans of `policy`, if plans follow each policy
 */
export function policiesLua(first = 1, planLua = ''): string {
  return `
local policies = {}
local at = ${first}
for number = 1, tonumber(ARGV[at]) or 0 do
  local window = ARGV[at + 4]
  local windowMs = tonumber(window) or tonumber(window:match('^%d+'))
  local policy = {
    algorithm = algorithms[ARGV[at + 1]],
    enforces = ARGV[at + 2] == 'enforce',
    quota = tonumber(ARGV[at + 3]),
    window = window,
    windowMs = windowMs,
    windowUs = windowMs * 1000,
    reserves = ARGV[at + 5] ~= 'one',
    delayUs = (tonumber(ARGV[at + 5]) or 0) * 1000,
  }
  policies[tostring(number)] = policy
  at = at + 5
${planLua}end

local function nextArgument()
  at = at + 1
  return ARGV[at]
end
`
}
