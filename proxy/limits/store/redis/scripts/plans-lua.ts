import { UNKNOWN_PLAN } from '../../../plans/plan-store.ts'

/**
 * Reads the plans at the keys behind the first `chargeCount` into `texts`, in their order: false without one, and where the key holds
 * something else; a table with `err` where it cannot be read. It needs `call`.
 */
export const planTextsLua = `
local texts = {}
-- One command for all of them where they are in one slot.
if #KEYS > chargeCount + 1 and not KEYS.areSpread then
  local read = call('MGET', unpack(KEYS, chargeCount + 1))
  if not read.err then
    texts = read
  else
    for place = 1, #KEYS - chargeCount do texts[place] = { err = read.err .. ' (MGET)' } end
  end
else
  for place = 1, #KEYS - chargeCount do
    local text = call('GET', KEYS[chargeCount + place])
    if type(text) == 'table' then
      text = not text.err:find('WRONGTYPE', 1, true) and { err = text.err .. ' (GET)' }
    end
    texts[place] = text
  end
end
`

/**
 * Looks for the plan `name` in `plans`: sets `place`, where the space before its name is, and `own`, its quota; or neither. The name may
 * be any text that somebody wrote: without an equals sign, it stands between a space and one only as a whole name.
 */
export const quotaOfPlanLua = `
          local last
          place, last = plans:find(' ' .. name .. '=', 1, true)
          if place and not name:find('=', 1, true) then own = tonumber(plans:match('^%d+', last + 1)) end
`

/**
 * What `decideScript` has besides where policies read the plan that was set for a client: a charge under one of them is counted with the
 * quota of the plan. A plan that the policy does not have changes nothing; a key that holds something else is no plan.
 *
 * Gateways ask about each request of a client under such a policy, also where it was refused just now, as the next one may have another
 * plan. So of the requests in a command that are refused by one counter, the first alone looks at it.
 *
 * KEYS   behind the counters, for each charge under such a policy the key of its client's plan
 * ARGV   behind the policies, the plans of each as `describePolicy` has them, empty for one without, and the number of charges
 * reply  at its end for each such charge the place of the plan's name in these, as `nameAt` reads it: 0 without one, -1 for one that the
 *        policy does not have
 */
export const planLua = {
  chargeCount: 'chargeCount',
  read: `
for number = 1, tonumber(ARGV[1]) or 0 do
  local policy = policies[tostring(number)]
  local plans = nextArgument()
  if plans ~= '' then
    policy.plans, policy.planWindow, policy.byText = plans, plans:match('^%d+'), {}
    policy.usual = { place = 0, quota = policy.quota, window = policy.window }
  end
end
local chargeCount = tonumber(nextArgument()) or 0
local planAt, plansRead = 0, {}
-- By charge, where its policy has plans.
local planOf = {}
${planTextsLua}
-- A charge counts under the policy itself, with the quota of the plan: what algorithms keep in it is found again under every plan.
local function useWindow(policy, plan)
  policy.window, policy.windowMs = plan.window, tonumber(plan.window)
  policy.windowUs = policy.windowMs * 1000
end
`,
  choose: `    local plans = policy.plans
    if plans then
      planAt = planAt + 1
      local name, plan = texts[planAt], policy.usual
      if name then
        plan = policy.byText[name]
        if not plan then
          plan = policy.usual
          if type(name) == 'table' then
            failure = failure or name.err
          elseif name ~= '' then
            local place, own
${quotaOfPlanLua}
            local usual = plan
            plan = { place = own and place or -1, quota = own or usual.quota, window = own and policy.planWindow or usual.window }
            policy.byText[name] = plan
          end
        end
      end
      plansRead[planAt], planOf[i], policy.quota = plan.place, plan, plan.quota
      if policy.planWindow then useWindow(policy, plan) end
    end
`,
  count: `      local fullFor = policy.fullFor
      if fullFor and units == 1 and fullFor[KEYS[i]] then
        left, resetUs = -1, fullFor[KEYS[i]]
      else
        left, resetUs, ticket, stateOf[i] = policy.algorithm.count(KEYS[i], policy, units)
        if left == -1 and units == 1 and plans then
          -- The microseconds until there is more, by counter without room for one unit.
          if not fullFor then
            fullFor = {}
            policy.fullFor = fullFor
          end
          fullFor[KEYS[i]] = resetUs
        end
      end
`,
  undo: `      if policy.plans then
        policy.quota = planOf[i].quota
        if policy.planWindow then useWindow(policy, planOf[i]) end
      end
`,
  undone: `      if policy.fullFor then policy.fullFor[KEYS[i]] = nil end
`,
  reply: `local last = 2 * chargeCount + 1
reply[last] = clockUs or 0
for place, ticket in ipairs(tickets) do reply[last + place] = ticket end
last = last + #tickets
for place = 1, planAt do reply[last + place] = plansRead[place] end
return reply`,
}

/** The name of the plan at this place of a policy's plans. */
export function nameAt(plans: string, place: unknown): string {
  if (typeof place !== 'number' || place === 0) return ''
  return place < 0 ? UNKNOWN_PLAN : plans.slice(place, plans.indexOf('=', place))
}
