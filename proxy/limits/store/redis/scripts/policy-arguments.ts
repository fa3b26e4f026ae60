import type { Algorithm } from '../../../algorithms/algorithm.ts'
import type { RedisPolicy } from '../keys.ts'

/**
 * The policies of a command, each described once however many of its counters are asked about.
 *
 * ARGV   how many policies there are; for each policy its algorithm, `enforce` where it refuses requests, else `shadow`, its quota,
 *        its window in milliseconds, with what its algorithm adds to that, and `units` where charges come with what to reserve, for
 *        how many milliseconds they may wait where they may, else `one`
 */
export class PolicyArguments {
  readonly #numbers = new Map<RedisPolicy, string>()
  /** The arguments of each, and its plans. */
  readonly #described: { readonly policy: readonly string[]; readonly plans: string }[] = []
  /** The algorithms of these policies. */
  readonly algorithms = new Set<Algorithm>()

  /** How the other arguments name the policy: by its number, from 1. */
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

  /** The same for scripts that read the plans of clients: after each policy its plans, empty for one without. */
  toArgumentsWithPlans(): string[] {
    return [
      String(this.#described.length),
      ...this.#described.flatMap(({ policy, plans }) => [...policy, plans]),
    ]
  }
}

/**
 * Reads them: `policies`, by their numbers, and `nextArgument()`, which returns the arguments after them, one by one. It needs
 * `algorithmsLua`.
 *
 * @param first the place of the first of them, from 1
 * @param planLua reads the plans of `policy`, in `plans`, where there are plans after each
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
