import type { RedisPolicy } from '../keys.ts'
import { script } from '../run-script.ts'
import { countLua } from './decide-plain.ts'
import { planTextsLua } from './plans-lua.ts'

/**
 * Decides as `decideByPlansScript` does, for less of Redis's time, where each request is one unit of one fixed window.
 *
 * KEYS   the counter of each request; behind these, for each request under a policy that reads plans the key of its client's plan
 * ARGV   how many requests there are; then for each row of requests of the same policy how many they are, and the policy's quota, its window
 *        in milliseconds, and its plans as `describePolicy` has them, empty for one without
 * reply  as that of `decideByPlansScript`
 */
export const decideSingleByPlansScript = script(`${countLua}
local chargeCount = tonumber(ARGV[1]) or 0
local planAt = chargeCount
local plansRead = {}
${planTextsLua}
local i = 0
for at = 2, #ARGV, 4 do
  local quota, windowMs, plans = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  for _ = 1, tonumber(ARGV[at]) or 0 do
    i = i + 1
    local own, unread = quota, nil
    if plans ~= '' then
      local name
      name, unread = nextPlan()
      if name and name ~= '' then
        own = quotaOf(plans, name)
        if not own then own, name = quota, '?' end
      end
      plansRead[#plansRead + 1] = name or ''
    end
    local remaining, left = nil, unread
    if not unread then remaining, left = count(KEYS[i], own, windowMs) end
    if remaining then
      reply[2 * i - 1], reply[2 * i] = remaining, left * 1000
    else
      reply[2 * i - 1], reply[2 * i] = left, 0
    end
  end
end
reply[2 * chargeCount + 1] = 0
reply[2 * chargeCount + 2] = plansRead
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
