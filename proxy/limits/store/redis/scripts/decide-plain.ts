import { script, type RedisScript } from '../run-script.ts'
import type { RedisPolicy } from '../keys.ts'
import { createWrittenScripts } from './written-scripts.ts'

/**
 * Counts one unit at `key`, in a window of `windowMs` with `quota`. It sets `remaining`, -1 if the unit does not fit, and `left`, the
 * milliseconds that are left of the window; or `failure`, an error text, if nothing was counted. It is not a function, because making
 * one and calling it took a tenth of the script's time.
 */
export const countLua = `
    local remaining, left, failure = -1, -1, nil
    local counted = call('INCR', key)
    if type(counted) ~= 'number' then
      failure = counted.err .. ' (INCR)'
    else
      if counted > 1 then
        left = call('PTTL', key)
        if type(left) ~= 'number' then
          failure = left.err .. ' (PTTL)'
        elseif left == 0 then
          -- The window has ended: Redis keeps a key for the millisecond in which it expires.
          local gone = call('DEL', key)
          if type(gone) ~= 'number' then failure = gone.err .. ' (DEL)' else counted, left = call('INCR', key), -1 end
        end
      end
      -- Longer than the window: the clock of Redis has been set back since.
      if not failure and (left < 0 or left > windowMs) then
        left = windowMs
        local isSet = call('PEXPIRE', key, left)
        if type(isSet) ~= 'number' then failure = isSet.err .. ' (PEXPIRE)' end
      end
      if failure then
        call(counted > 1 and 'DECR' or 'DEL', key)
      elseif counted <= quota then
        remaining = quota - counted
      else
        local back = call('DECR', key)
        if type(back) ~= 'number' then failure = back.err .. ' (DECR)' end
      end
    end
`

/** Decides the request that counts at `KEYS[i]`. */
const decideKeyLua = `
    local key = KEYS[i]
${countLua}
    if failure then remaining, left = failure, 0 end
    reply[2 * i - 1], reply[2 * i] = remaining, left * 1000
`

/**
 * Decides as `decideScript` does, in about two thirds of Redis's time, if each request takes one unit of one fixed window and no unit
 * is ever given back. Such a command needs neither a table of algorithms nor their functions: making these took longer than
 * counting.
 *
 * KEYS   the counter of each request
 * ARGV   for each row of requests under the same policy: the number of requests, and the policy's quota and its window in milliseconds
 * reply  the reply of `decideScript`, without tickets
 */
export const decideSingleScript = script(`
local call, type, reply, i = redis.pcall, type, {}, 0
for at = 1, #ARGV, 3 do
  local quota, windowMs = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  for _ = 1, tonumber(ARGV[at]) or 0 do
    i = i + 1
${decideKeyLua}
  end
end
return reply
`)

/**
 * Does the same for requests that are all under one policy, with its quota and its window written in the script. Reading three arguments
 * and converting them to numbers took a fifth of Redis's time for a single decision in a command.
 *
 * KEYS   the counter of each request
 * reply  the reply of `decideSingleScript`
 */
const scriptOf = createWrittenScripts(
  (quotaAndWindowMs) => `
local call, type, reply = redis.pcall, type, {}
local quota, windowMs = ${quotaAndWindowMs}
for i = 1, #KEYS do
${decideKeyLua}
end
return reply
`,
  decideSingleScript,
)

/**
 * `decide(first, size, quotas, windows, enforces)` decides a request with `size` charges, whose counters begin at `KEYS[first]`, and puts
 * its values into `reply`.
 */
const decideChargesLua = `
local call, type, reply = redis.pcall, type, {}

-- Takes back what a request has counted.
local function undo(first, last, quotas, windows)
  local failure
  for i = last, first, -1 do
    local remaining = reply[2 * i - 1]
    if remaining >= 0 then
      local place = i - first + 1
      local isFirst = remaining + 1 == quotas[place]
      local back = call(isFirst and 'DEL' or 'DECR', KEYS[i])
      if type(back) ~= 'number' then failure = back.err .. (isFirst and ' (DEL)' or ' (DECR)') end
      reply[2 * i - 1] = remaining + 1
      if isFirst then reply[2 * i] = windows[place] * 1000 end
    end
  end
  return failure
end

local function decide(first, size, quotas, windows, enforces)
  local refused, failed = false, nil
  local last = first - 1
  while last < first + size - 1 and not failed do
    local place = last - first + 2
    local key, quota, windowMs = KEYS[last + 1], quotas[place], windows[place]
${countLua}
    failed = failure
    if not failed then
      last = last + 1
      reply[2 * last - 1], reply[2 * last] = remaining, left * 1000
      refused = refused or remaining == -1 and enforces[place]
    end
  end
  if refused or failed then failed = undo(first, last, quotas, windows) or failed end
  if failed then
    for i = first, first + size - 1 do
      reply[2 * i - 1], reply[2 * i] = failed, 0
    end
  end
end
`

/**
 * Does the same for requests with several charges.
 *
 * KEYS   the counter of each charge, request by request
 * ARGV   for each row of requests under the same policies: the number of requests, the number of charges of each, and for each charge its
 *        policy's quota, its window in milliseconds, and 1 if the policy is enforced, otherwise 0
 */
export const decidePlainScript = script(`
${decideChargesLua}
local i, at = 1, 1
while at < #ARGV do
  local requests, size = tonumber(ARGV[at]) or 0, tonumber(ARGV[at + 1]) or 0
  local quotas, windows, enforces = {}, {}, {}
  at = at + 2
  for place = 1, size do
    quotas[place], windows[place], enforces[place] = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), ARGV[at + 2] == '1'
    at = at + 3
  end
  for _ = 1, requests do
    decide(i, size, quotas, windows, enforces)
    i = i + size
  end
end
return reply
`)

/** Does the same for requests that are all under the same policies, with the policies' numbers written in the script. */
const scriptOfCharges = createWrittenScripts(
  (size, quotas, windows, enforces) => `
${decideChargesLua}
local quotas, windows, enforces = { ${quotas} }, { ${windows} }, { ${enforces} }
for first = 1, #KEYS, ${size} do decide(first, ${size}, quotas, windows, enforces) end
return reply
`,
  decidePlainScript,
)

/** Selects the script for requests whose charges are all plain, and makes its arguments. */
export class PlainArguments {
  readonly #rows: Row[] = []

  /** Appends a request under these policies. */
  add(policies: readonly RedisPolicy[]): void {
    const last = this.#rows.at(-1)
    if (last && isSame(policies, last.policies)) last.requests += 1
    else this.#rows.push({ policies, requests: 1 })
  }

  toCommand(): { readonly script: RedisScript; readonly args: string[] } {
    const rows = this.#rows
    const areSingle = rows.every(({ policies }) => policies.length === 1)
    const otherwise = areSingle ? decideSingleScript : decidePlainScript
    const [row] = rows
    const script = rows.length === 1 && row?.policies.length ? writtenScriptOf(row.policies) : otherwise
    if (script !== otherwise) return { script, args: [] }
    const args = rows.flatMap(({ policies, requests }) => [
      String(requests),
      ...(areSingle ? [] : [String(policies.length)]),
      ...policies.flatMap(({ plain = [] }) => (areSingle ? plain.slice(0, 2) : plain)),
    ])
    return { script, args }
  }
}

function writtenScriptOf(policies: readonly RedisPolicy[]): RedisScript {
  const column = (at: number): string => policies.map(({ plain }) => plain?.[at]).join(', ')
  const [quotas, windows] = [column(0), column(1)]
  if (policies.length === 1) return scriptOf(`${quotas}, ${windows}`)
  const enforces = policies.map(({ plain }) => plain?.[2] === '1').join(', ')
  return scriptOfCharges(String(policies.length), quotas, windows, enforces)
}

type Row = { readonly policies: readonly RedisPolicy[]; requests: number }

function isSame(some: readonly RedisPolicy[], others: readonly RedisPolicy[]): boolean {
  return some.length === others.length && some.every((policy, i) => policy === others[i])
}
