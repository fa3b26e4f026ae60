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
  readonly #described: string[] = []
  /** Of all these policies. */
  readonly algorithms = new Set<Algorithm>()

  /** How the other arguments name the policy: by its number, from 1. */
  numberOf(policy: RedisPolicy): string {
    const known = this.#numbers.get(policy)
    if (known !== undefined) return known
    const number = String(this.#numbers.size + 1)
    this.#numbers.set(policy, number)
    this.#described.push(...policy.described)
    this.algorithms.add(policy.algorithm)
    return number
  }

  /** The plans of each of them, for scripts that read those of clients; empty for a policy without. */
  toPlans(): string[] {
    return Array.from(this.#numbers.keys(), ({ plans = '' }) => plans)
  }

  /** The arguments that describe the policies. */
  toArguments(): string[] {
    return [String(this.#numbers.size), ...this.#described]
  }
}

/**
 * Reads them: `policies`, by their numbers, and `nextArgument()`, which returns the arguments after them, one by one. It needs
 * `algorithmsLua`.
 *
 * @param first the place of the first of them, from 1
 */
export function policiesLua(first = 1): string {
  return `
local policies = {}
local at = ${first}
for number = 1, tonumber(ARGV[at]) or 0 do
  local window = ARGV[at + 4]
  local windowMs = tonumber(window) or tonumber(window:match('^%d+'))
  policies[tostring(number)] = {
    algorithm = algorithms[ARGV[at + 1]],
    enforces = ARGV[at + 2] == 'enforce',
    quota = tonumber(ARGV[at + 3]),
    window = window,
    windowMs = windowMs,
    windowUs = windowMs * 1000,
    reserves = ARGV[at + 5] ~= 'one',
    delayUs = (tonumber(ARGV[at + 5]) or 0) * 1000,
  }
  at = at + 5
end

local function nextArgument()
  at = at + 1
  return ARGV[at]
end
`
}
