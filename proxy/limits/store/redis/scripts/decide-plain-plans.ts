import type { RedisPolicy } from '../keys.ts'
import { script, type RedisScript } from '../run-script.ts'
import { countLua } from './decide-plain.ts'
import { planTextsLua, quotaOfPlanLua } from './plans-lua.ts'
import { createWrittenScripts } from './written-scripts.ts'

/**
 * The script stores the place of a plan as the fraction of its quota, in this many parts, so that quota and place are found together.
 * There are more parts than characters in the plans of a policy, and the product of `PLACES` and `MAX_QUOTA` is an exact number.
 */
const PLACES = 2 ** 14
/** The place that stands for a plan which the policy does not have. */
const UNKNOWN_PLACE = PLACES - 1

/** A remaining quota of -1, with the place of the plan. */
const REFUSED = `(quota % 1 - 1) * ${PLACES}`

/**
 * Counts at `key` with a `quota` that has the place of the plan as its fraction, and replies for the request `i`; `unread` is the error of
 * its plan. It needs `full`, a table of the replied times by counter without room, which does not exist before the first such counter.
 */
const countAndReplyLua = `
    if unread then
      reply[2 * i - 1], reply[2 * i] = unread, 0
    elseif full and full[key] then
      reply[2 * i - 1], reply[2 * i] = ${REFUSED}, full[key]
    else
${countLua}
      if failure then
        remaining, left = failure, 0
      elseif remaining ~= -1 then
        remaining = remaining * ${PLACES}
      else
        full = full or {}
        full[key] = left
        remaining = ${REFUSED}
      end
      reply[2 * i - 1], reply[2 * i] = remaining, left
    end
`

/**
 * Decides as `decideByPlansScript` does, in less of Redis's time, if each request takes one unit of one fixed window.
 *
 * KEYS   the counter of each request; then for each request under a policy that reads plans, the key of its client's plan
 * ARGV   for each row of requests under the same policy: the number of requests, and the policy's quota, its window in milliseconds, and
 *        its plans as in `describePolicy`, empty for a policy without plans
 * reply  for each request the remaining quota, or -1 if the quota is exceeded, times `PLACES`, plus the place of the plan; and the
 *        milliseconds until the window ends. If nothing was counted, an error text replaces the first value
 */
const anyScript = script(`
local call, type, reply, i = redis.pcall, type, {}, 0
local chargeCount, planAt = 0, 0
for at = 1, #ARGV, 4 do chargeCount = chargeCount + (tonumber(ARGV[at]) or 0) end
${planTextsLua}
local full
-- By the plans of a policy, by the text of one: its quota, with its place; false for a text that names no plan.
local quotasIn = {}
for at = 1, #ARGV, 4 do
  local usual, windowMs, plans = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  local quotas = plans ~= '' and (quotasIn[plans] or {})
  quotasIn[plans] = quotas
  for _ = 1, tonumber(ARGV[at]) or 0 do
    i = i + 1
    local key, quota, unread = KEYS[i], usual, nil
    if quotas then
      planAt = planAt + 1
      local name = texts[planAt]
      if type(name) == 'table' then
        unread = name.err
      elseif name and name ~= '' then
        local known = quotas[name]
        if known == nil then
          local place, own
${quotaOfPlanLua}
          known = own and own + place / ${PLACES} or false
          quotas[name] = known
        end
        quota = known or usual + ${UNKNOWN_PLACE / PLACES}
      end
    end
${countAndReplyLua}
  end
end
return reply
`)

/**
 * Does the same for requests that are all under one policy, with its numbers written in the script. Reading the numbers from arguments
 * took a quarter of the instructions for a single request.
 *
 * KEYS   the counter of each request; then for each request, the key of its client's plan
 */
const scriptOf = createWrittenScripts(
  (quotaAndWindowMs, plans) => `
local call, type, reply = redis.pcall, type, {}
local chargeCount = #KEYS / 2
${planTextsLua}
local full
local usual, windowMs = ${quotaAndWindowMs}
local quotas = { [false] = usual, [''] = usual, ${quotasLua(plans)} }
for i = 1, chargeCount do
  local key, name = KEYS[i], texts[i]
  local quota, unread = quotas[name], nil
  if not quota then
    quota = usual + ${UNKNOWN_PLACE / PLACES}
    if type(name) == 'table' then unread = name.err end
  end
${countAndReplyLua}
end
return reply
`,
  anyScript,
)

/** Returns the fields of a Lua table that has the quota of each plan, with its place, by the plan's name. */
function quotasLua(plans: string): string {
  const quotas = plans.matchAll(/ ([\w.-]+)=(\d+)/g)
  // Lua counts from 1.
  return Array.from(
    quotas,
    ({ 1: name, 2: quota, index }) => `['${name}'] = ${Number(quota) + (index + 1) / PLACES}`,
  ).join(', ')
}

/** Returns the script for requests that are all under the policy with this description. */
function ownScriptOf(plain: readonly string[], plans: string): RedisScript {
  return scriptOf(plain.slice(0, 2).join(', '), plans)
}

/** The script for requests of these policies, and its arguments. */
export function singleByPlans(policies: readonly RedisPolicy[]): {
  readonly script: RedisScript
  readonly args: string[]
} {
  const rows: { readonly policy: RedisPolicy; requests: number }[] = []
  for (const policy of policies) {
    const last = rows.at(-1)
    if (last?.policy === policy) last.requests += 1
    else rows.push({ policy, requests: 1 })
  }
  const [row] = rows
  const { plain = [], plans } = row?.policy ?? {}
  const decideScript = rows.length === 1 && plans !== undefined ? ownScriptOf(plain, plans) : anyScript
  if (decideScript !== anyScript) return { script: decideScript, args: [] }
  const args = rows.flatMap(({ policy: { plain = [], plans = '' }, requests }) => [
    String(requests),
    ...plain.slice(0, 2),
    plans,
  ])
  return { script: decideScript, args }
}

/**
 * Takes the places of plans out of the reply, which then holds only the remaining quotas. Returns the places, request by request, in the
 * form that `nameAt` takes.
 */
export function takePlaces(reply: unknown[]): number[] {
  const places: number[] = []
  for (let at = 0; at < reply.length; at += 2) {
    const sum = reply[at]
    if (typeof sum !== 'number') {
      places.push(0)
      continue
    }
    const remaining = Math.floor(sum / PLACES)
    const place = sum - remaining * PLACES
    places.push(place === UNKNOWN_PLACE ? -1 : place)
    reply[at] = remaining
  }
  return places
}
