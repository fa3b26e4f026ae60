/** Reads the plans at the keys behind the first `chargeCount`, one by one. It needs `call` and `planAt`. */
export const planTextsLua = `
-- One command for all of them where they are in one slot.
local texts
if #KEYS > chargeCount + 1 and not KEYS.areSpread then
  texts = call('MGET', unpack(KEYS, chargeCount + 1))
  if texts.err then texts.err = texts.err .. ' (MGET)' end
end

-- The text at the next key: empty without one, and where the key holds something else; or nil and an error text.
local function nextPlan()
  planAt = planAt + 1
  if texts then
    if texts.err then return nil, texts.err end
    return texts[planAt - chargeCount] or ''
  end
  local name = call('GET', KEYS[planAt]) or ''
  if type(name) ~= 'table' then return name end
  if name.err:find('WRONGTYPE', 1, true) then return '' end
  return nil, name.err .. ' (GET)'
end

-- The quota of the plan of this name, if there is one.
local function quotaOf(plans, name)
  local last
  if name:find('^[%w._-]+$') then last = select(2, plans:find(' ' .. name .. '=', 1, true)) end
  return last and tonumber(plans:match('^%d+', last + 1))
end
`

/**
 * What `decideScript` has besides where policies read the plan that was set for a client: a charge under one of them is counted with the
 * quota of the plan. A plan that the policy does not have changes nothing; a key that holds something else is no plan.
 *
 * KEYS   behind the counters, for each charge under such a policy the key of its client's plan
 * ARGV   behind the policies, the plans of each as `describePolicy` has them, empty for one without, and the number of charges
 * reply  at its end an array with the name of the plan for each such charge: empty without one, `?` for one that the policy does not have
 */
export const planLua = {
  chargeCount: 'chargeCount',
  read: `
for number = 1, tonumber(ARGV[1]) or 0 do
  local policy = policies[tostring(number)]
  policy.plans = nextArgument()
  if policy.plans ~= '' then policy.planned, policy.meta = {}, { __index = policy } end
end
local chargeCount = tonumber(nextArgument()) or 0
local planAt = chargeCount
local plansRead = {}
${planTextsLua}
-- The policy with the quota of the client's plan, and the plan's name; or an error text behind them.
local function readPlan(policy)
  local name, unread = nextPlan()
  if not name then return policy, '', unread end
  if name == '' then return policy, name end
  local planned = policy.planned[name]
  if not planned then
    local quota = quotaOf(policy.plans, name)
    if not quota then return policy, '?' end
    planned = setmetatable({ quota = quota }, policy.meta)
    local window = policy.plans:match('^%d+')
    if window then
      planned.window, planned.windowMs, planned.windowUs = window, tonumber(window), window * 1000
    end
    policy.planned[name] = planned
  end
  return planned, name
end
`,
  choose: `    if policy.meta then
      local name, unread
      policy, name, unread = readPlan(policy)
      plansRead[#plansRead + 1] = name
      failure = failure or unread
    end
`,
  reply: `reply[2 * chargeCount + 1] = clockUs or 0
for place, ticket in ipairs(tickets) do reply[2 * chargeCount + 1 + place] = ticket end
reply[2 * chargeCount + 2 + #tickets] = plansRead
return reply`,
}
