import type { RedisPolicy } from '../keys.ts'
import { script } from '../run-script.ts'
import { countLua } from './decide-plain.ts'
import { planTextsLua, quotaOfPlanLua } from './plans-lua.ts'

/** The place of the client's plan is added to the milliseconds of its window, times this: more than 34 years. */
const PLACE = 2 ** 40

/**
 * Decides as `decideByPlansScript` does, for less of Redis's time, where each request is one unit of one fixed window.
 *
 * KEYS   the counter of each request; behind these, for each request under a policy that reads plans the key of its client's plan
 * ARGV   how many requests there are; then for each row of requests of the same policy how many they are, and the policy's quota, its window
 *        in milliseconds, and its plans as `describePolicy` has them, empty for one without
 * reply  for each request the remaining quota, or -1 if the quota is exceeded, and the milliseconds until the window ends, to which the
 *        place of the plan is added, times `PLACE`; in place of the first an error text, where nothing was counted
 */
export const decideSingleByPlansScript = script(`
local call, type, reply, i = redis.pcall, type, {}, 0
local chargeCount = tonumber(ARGV[1]) or 0
local planAt, nobody = 0, {}
${planTextsLua}
for at = 2, #ARGV, 4 do
  local requests = tonumber(ARGV[at]) or 0
  local usual, windowMs, plans = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  -- The texts of the row's plans are behind those of the rows before.
  local names, shift = nobody, 0
  if plans ~= '' then
    names, shift = texts, planAt - i
    planAt = planAt + requests
  end
  -- By the text of the plan: its quota, and its place, as it is added to the replied time.
  local quotas, places = {}, {}
  -- By request the error of its plan; by counter without room the replied time. There is no table before the first of these.
  local known
  for _ = 1, requests do
    i = i + 1
    local key, quota, place = KEYS[i], usual, 0
    local name = names[i + shift]
    if name then
      quota, place = quotas[name], places[name]
      if not quota then
        quota, place = usual, 0
        if type(name) == 'table' then
          known = known or {}
          known[i] = name.err
        elseif name ~= '' then
          local own
          place = nil
${quotaOfPlanLua}
          quota, place = own or usual, (place or -1) * ${PLACE}
          if requests > 1 then quotas[name], places[name] = quota, place end
        end
      end
    end
    if known and known[i] then
      reply[2 * i - 1], reply[2 * i] = known[i], 0
    elseif known and known[key] then
      reply[2 * i - 1], reply[2 * i] = -1, known[key]
    else
${countLua}
      if failure then
        remaining, left = failure, 0
      else
        left = left + place
        if remaining == -1 then
          known = known or {}
          known[key] = left
        end
      end
      reply[2 * i - 1], reply[2 * i] = remaining, left
    end
  end
end
return reply
`)

/** Its arguments, for requests of these policies. */
export function singleByPlansArguments(policies: readonly RedisPolicy[]): string[] {
  const rows: { readonly policy: RedisPolicy; requests: number }[] = []
  for (const policy of policies) {
    const last = rows.at(-1)
    if (last?.policy === policy) last.requests += 1
    else rows.push({ policy, requests: 1 })
  }
  const described = rows.flatMap(({ policy: { plain = [], plans = '' }, requests }) => [
    String(requests),
    ...plain.slice(0, 2),
    plans,
  ])
  return [String(policies.length), ...described]
}

/** Takes the places of plans out of its reply, which holds the milliseconds alone then. Returns them, request by request. */
export function takePlaces(reply: unknown[]): number[] {
  const places: number[] = []
  for (let at = 1; at < reply.length; at += 2) {
    const sum = Number(reply[at])
    const place = Math.floor(sum / PLACE)
    places.push(place)
    reply[at] = sum - place * PLACE
  }
  return places
}
