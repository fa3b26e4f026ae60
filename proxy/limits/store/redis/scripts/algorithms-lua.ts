import type { Algorithm } from '../../../algorithms/algorithm.ts'
import type { AlgorithmLua } from '../../../algorithms/redis-counts.ts'
import { algorithms } from '../../../algorithms/registry.ts'
import { script, type RedisScript } from '../run-script.ts'

type LuaPart = Exclude<keyof AlgorithmLua, 'common'>

/** Defines the functions that `AlgorithmLua` describes, with which the algorithms' Lua calls Redis and reads its clock. */
const toolsLua = `
local call = redis.pcall
-- The error of the first command of \`must\` that the user has no right to.
local denied

local function must(command, ...)
  local reply = call(command, ...)
  if type(reply) == 'table' and reply.err then denied = denied or reply.err .. ' (' .. command .. ')' end
  return reply
end

local clockUs

local function readClockUs()
  if clockUs then return clockUs end
  local time = must('TIME')
  clockUs = not time.err and time[1] * 1000000 + time[2] or nil
  return clockUs
end
`

/**
 * Returns the beginning of a script: the table `algorithms`, by name, with these parts' functions of each, and the functions that they use.
 *
 * @param chosen all algorithms that the script's policies may have
 */
export function algorithmsLua(
  parts: LuaPart | readonly LuaPart[],
  chosen: readonly Algorithm[] = algorithms,
): string {
  const blocks = chosen.map(({ name, redis: { lua } }) => {
    const source = [parts]
      .flat()
      .map((part) => lua[part] ?? '')
      .join('')
    if (source === '') return ''
    return `
do
  local algorithm = {}
  algorithms['${name}'] = algorithm
${lua.common ?? ''}${source}
end`
  })
  return `${toolsLua}
local algorithms = {}
${blocks.join('\n')}
`
}

/**
 * Makes scripts with the Lua of only some algorithms, once for each selection. A script with one algorithm is a fraction of the script
 * with all algorithms, and starts faster.
 *
 * @param make returns the script's text
 */
export function byAlgorithms(
  make: (chosen: readonly Algorithm[]) => string,
): (used: ReadonlySet<Algorithm>) => RedisScript {
  const made = new Map<string, RedisScript>()
  return (used) => {
    const chosen = algorithms.filter((algorithm) => used.has(algorithm))
    const names = chosen.map(({ name }) => name).join()
    const known = made.get(names)
    if (known) return known
    const text = script(make(chosen))
    made.set(names, text)
    return text
  }
}
