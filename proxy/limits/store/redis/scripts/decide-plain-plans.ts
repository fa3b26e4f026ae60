import type { RedisPolicy } from '../keys.ts'
import { script, type RedisScript } from '../run-script.ts'
import { countLua } from './decide-plain.ts'
import { planTextsLua, quotaOfPlanLua } from './plans-lua.ts'
import { createWrittenScripts } from './written-scripts.ts'

/**
 * The script has the place of a plan as a fraction of its quota, of so many parts: quota and place are found together then. There are
 * more parts than characters in the plans of a policy, and the product of this and `MAX_QUOTA` is an exact number.
 */
const PLACES = 2 ** 14
/** In the place of that of a plan which the policy does not have. */
const UNKNOWN_PLACE = PLACES - 1

/** In the place of plans that are written in the script. */
const WRITTEN = '*'

/**
 * Decides as `decideByPlansScript` does, for less of Redis's time, where each request is one unit of one fixed window.
 *
 * KEYS   the counter of each request; after these, for each request under a policy that reads plans the key of its client's plan
 * ARGV   for each row of requests of the same policy how many they are, and the policy's quota, its window in milliseconds, and its plans
 *        as `describePolicy` has them, empty for one without; `WRITTEN` where the script has them
 * reply  for each request the remaining quota, or -1 if the quota is exceeded, times `PLACES`, to which the place of the plan is added, and
 *        the milliseconds until the window ends; in place of the first an error text, where nothing was counted
 *
 * @param quotas fields of a table, of all plans or none: by the text of a plan its quota, with its place as a fraction
 */
const decideLua = (quotas: string): string => `
local call, type, reply, i = redis.pcall, type, {}, 0
local chargeCount, planAt = 0, 0
for at = 1, #ARGV, 4 do chargeCount = chargeCount + (tonumber(ARGV[at]) or 0) end
${planTextsLua}
for at = 1, #ARGV, 4 do
  local requests = tonumber(ARGV[at]) or 0
  local usual, windowMs, plans = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  local readsPlans = plans ~= ''
  local quotas = { [false] = usual, ${quotas} }
  -- By request the error of its plan; by counter without room the replied time. There is no table before the first of these.
  local known
  for _ = 1, requests do
    i = i + 1
    local key, quota = KEYS[i], usual
    if readsPlans then
      planAt = planAt + 1
      local name = texts[planAt]
      quota = quotas[name]
      if not quota then
        quota = usual
        if type(name) == 'table' then
          known = known or {}
          known[i] = name.err
        elseif name ~= '' then
          local place, own
${quotaOfPlanLua}
          quota = (own or usual) + (own and place or ${UNKNOWN_PLACE}) / ${PLACES}
          if requests > 1 then quotas[name] = quota end
        end
      end
    end
    if known and (known[i] or known[key]) then
      reply[2 * i - 1], reply[2 * i] = known[i] or (quota % 1 - 1) * ${PLACES}, known[key] or 0
    else
${countLua}
      if failure then
        remaining, left = failure, 0
      elseif remaining ~= -1 then
        remaining = remaining * ${PLACES}
      else
        known = known or {}
        known[key] = left
        remaining = (quota % 1 - 1) * ${PLACES}
      end
      reply[2 * i - 1], reply[2 * i] = remaining, left
    end
  end
end
return reply
`

/** For a command whose policies have different plans. */
const anyPlansScript = script(decideLua(''))

/**
 * The script for policies which all have these plans. Their quotas are written in it: to look for two of them in an argument took 4 % of
 * the instructions for sixteen requests.
 */
const scriptOf = createWrittenScripts((plans) => {
  const quotas = Array.from(plans.matchAll(/ ([\w.-]+)=(\d+)/g), ({ 1: name = '', 2: quota, index }) => {
    // Lua counts from 1.
    const value = Number(quota) + (index + 1) / PLACES
    return `['${name}'] = ${value}`
  })
  return decideLua(quotas.join(', '))
}, anyPlansScript)

/** The scripts that decide requests of a policy with these plans: alone, and together with those of others. */
export function singleByPlansScripts(plans: string): RedisScript[] {
  return [scriptOf(plans), anyPlansScript]
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
  const all = new Set(rows.flatMap(({ policy: { plans } }) => plans ?? []))
  const [first = ''] = all
  const decideScript = all.size === 1 ? scriptOf(first) : anyPlansScript
  const args = rows.flatMap(({ policy: { plain = [], plans }, requests }) => [
    String(requests),
    ...plain.slice(0, 2),
    plans === undefined ? '' : decideScript === anyPlansScript ? plans : WRITTEN,
  ])
  return { script: decideScript, args }
}

/**
 * Takes the places of plans out of its reply, which holds the remaining quotas alone then. Returns them, request by request, as `nameAt`
 * reads them.
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
