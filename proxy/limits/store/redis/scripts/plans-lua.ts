import { UNKNOWN_PLAN } from '../../../plans/plan-store.ts'

/**
 * Reads the plans at the keys after the first `chargeCount` into `texts`, in their order: false if there is no plan or if the key holds
 * something else; a table with `err` if the key cannot be read. It needs `call`.
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
 * Looks for the plan `name` in `plans`. Sets `place`, the position of the space before its name, and `own`, its quota, which stays nil if
 * there is no such plan. The name may be any text: without an equals sign, it is found between a space and an equals sign only as a
 * whole name.
 */
export const quotaOfPlanLua = `
          local last
          place, last = plans:find(' ' .. name .. '=', 1, true)
          if place and not name:find('=', 1, true) then own = tonumber(plans:match('^%d+', last + 1)) end
`

/**
 * The additions to `decideScript` for policies that read the plan set for a client: a charge under such a policy is counted with the
 * quota of the plan. A plan that the policy does not have changes nothing; a key that holds something else is not a plan.
 *
 * Gateways ask about each request of a client under such a policy, even right after a refusal, because the client may have another plan
 * by then. So if one counter refuses several requests in a command, only the first of them accesses the counter.
 *
 * KEYS   after the counters, for each charge under such a policy the key of its client's plan
 * ARGV   after each policy its plans as in `describePolicy`, empty for a policy without plans; after all policies, the number of charges;
 *        before units of which at most the quota is taken, `<=`
 * reply  at its end for each such charge the place of the plan's name in the policy's plans, for `nameAt`: 0 without a plan, -1 for a plan
 *        that the policy does not have
 */
export const planLua = {
  chargeCount: 'chargeCount',
  policies: `
  at = at + 1
  local plans = ARGV[at]
  if plans ~= '' then
    local window = plans:match('^%d+')
    -- A plan is its place, its quota, and its window where that differs.
    local usual = { 0, policy.quota, window and policy.window }
    -- By their texts; and the text of all of them, and their window.
    policy.plans = { plans, window, [false] = usual, [''] = usual }
  end
`,
  read: `
-- By policy with plans, by counter without room for one unit: the microseconds until there is more. There is no table before the first.
local fullFor
local chargeCount = tonumber(nextArgument()) or 0
-- The plans that were read before the charge in question, and before those of its request.
local planAt, plansBefore = 0, 0
${planTextsLua}
-- A charge counts under the policy itself, with the quota of the plan: what algorithms keep in it is found again under every plan.
local function usePlan(policy, plan)
  policy.quota = plan[2]
  local window = plan[3]
  if window then
    policy.window, policy.windowMs = window, tonumber(window)
    policy.windowUs = policy.windowMs * 1000
  end
end
`,
  begin: `  plansBefore = planAt
`,
  choose: `    local plans = policy.plans
    if plans then
      planAt = planAt + 1
      local name = texts[planAt]
      local plan = plans[name]
      if not plan then
        plan = plans[false]
        if type(name) == 'table' then
          failure = failure or name.err
        else
          local plans, usual, place, own = plans[1], plan, nil, nil
${quotaOfPlanLua}
          plan = own and { place, own, policy.plans[2] } or { -1, usual[2], usual[3] }
          policy.plans[name] = plan
        end
      end
      -- In the place of its text.
      texts[planAt] = plan
      usePlan(policy, plan)
      local most = policy.reserves and units:match('^<=(%d+)$')
      if most then units = math.min(tonumber(most), policy.quota) end
    end
`,
  count: `      local full = fullFor and fullFor[policy]
      if full and units == 1 and full[KEYS[i]] then
        left, resetUs = -1, full[KEYS[i]]
      else
        left, resetUs, ticket, stateOf[i] = policy.algorithm.count(KEYS[i], policy, units)
        if left == -1 and units == 1 and plans then
          fullFor = fullFor or {}
          fullFor[policy] = full or {}
          fullFor[policy][KEYS[i]] = resetUs
        end
      end
`,
  undoFirst: `  local planAt = plansBefore
`,
  undo: `    if policyOf[i].plans then planAt = planAt + 1 end
`,
  undoPlan: `      if policy.plans then usePlan(policy, texts[planAt]) end
`,
  undone: `      if fullFor and fullFor[policy] then fullFor[policy][KEYS[i]] = nil end
`,
  reply: `local last = 2 * chargeCount + 1
reply[last] = clockUs or 0
for place, ticket in ipairs(tickets) do reply[last + place] = ticket end
last = last + #tickets
for place = 1, planAt do reply[last + place] = texts[place][1] end
return reply`,
}

/** The name of the plan at this place of a policy's plans. */
export function nameAt(plans: string, place: unknown): string {
  if (typeof place !== 'number' || place === 0) return ''
  return place < 0 ? UNKNOWN_PLAN : plans.slice(place, plans.indexOf('=', place))
}
