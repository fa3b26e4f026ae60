import { script, type RedisScript } from '../run-script.ts'
import type { RedisPolicy } from '../keys.ts'

/** `count(key, quota, windowMs)`, and `reply`. */
export const countLua = `
local call = redis.pcall

-- Counts one unit: the remaining quota, or -1 if it does not fit, and the milliseconds that are left of the window; or nil and an
-- error text, and nothing is counted then.
local function count(key, quota, windowMs)
  local counted = call('INCR', key)
  if type(counted) ~= 'number' then return nil, counted.err .. ' (INCR)' end
  local left, failure = -1, nil
  if counted > 1 then
    left = call('PTTL', key)
    if type(left) ~= 'number' then failure = left.err .. ' (PTTL)' end
  end
  -- Longer than the window: the clock of Redis has been set back since.
  if not failure and (left < 0 or left > windowMs) then
    left = windowMs
    local isSet = call('PEXPIRE', key, left)
    if type(isSet) ~= 'number' then failure = isSet.err .. ' (PEXPIRE)' end
  end
  if failure then
    call(counted > 1 and 'DECR' or 'DEL', key)
    return nil, failure
  end
  if counted <= quota then return quota - counted, left end
  local back = call('DECR', key)
  if type(back) ~= 'number' then return nil, back.err .. ' (DECR)' end
  return -1, left
end

local reply = {}
`

/**
 * Decides as `decideScript` does, for about two thirds of Redis's time, where each request is one unit of one fixed window and none
 * is ever given back. Such a command needs no table of algorithms and none of their functions: making these took longer than
 * counting.
 *
 * KEYS   the counter of each request
 * ARGV   for each row of requests of the same policy: how many they are, and the policy's quota, and its window in milliseconds
 * reply  as that of `decideScript`, without tickets
 */
export const decideSingleScript = script(`${countLua}
local i = 0
for at = 1, #ARGV, 3 do
  local quota, windowMs = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  for _ = 1, tonumber(ARGV[at]) or 0 do
    i = i + 1
    local remaining, left = count(KEYS[i], quota, windowMs)
    if remaining then
      reply[2 * i - 1], reply[2 * i] = remaining, left * 1000
    else
      reply[2 * i - 1], reply[2 * i] = left, 0
    end
  end
end
return reply
`)

/**
 * The same for requests of several charges.
 *
 * KEYS   the counter of each charge, request by request
 * ARGV   for each row of requests of the same policies: how many they are, how many charges each has, and for each of these its policy's
 *        quota, its window in milliseconds, and 1 where it is enforced, else 0
 */
export const decidePlainScript = script(`${countLua}
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
  local refused, failure = false, nil
  local last = first - 1
  while last < first + size - 1 and not failure do
    local place = last - first + 2
    local remaining, left = count(KEYS[last + 1], quotas[place], windows[place])
    if remaining then
      last = last + 1
      reply[2 * last - 1], reply[2 * last] = remaining, left * 1000
      refused = refused or remaining == -1 and enforces[place]
    else
      failure = left
    end
  end
  if refused or failure then failure = undo(first, last, quotas, windows) or failure end
  if failure then
    for i = first, first + size - 1 do
      reply[2 * i - 1], reply[2 * i] = failure, 0
    end
  end
end

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

/** The script for requests whose charges are all plain, and its arguments. */
export class PlainArguments {
  readonly #rows: Row[] = []

  /** Adds a request of these policies, behind those before. */
  add(policies: readonly RedisPolicy[]): void {
    const last = this.#rows.at(-1)
    if (last && isSame(policies, last.policies)) last.requests += 1
    else this.#rows.push({ policies, requests: 1 })
  }

  toCommand(): { readonly script: RedisScript; readonly args: string[] } {
    const rows = this.#rows
    if (rows.every(({ policies }) => policies.length === 1)) {
      const args = rows.flatMap(({ policies, requests }) => [
        String(requests),
        ...policies.flatMap(({ plain = [] }) => plain.slice(0, 2)),
      ])
      return { script: decideSingleScript, args }
    }
    const args = rows.flatMap(({ policies, requests }) => [
      String(requests),
      String(policies.length),
      ...policies.flatMap(({ plain = [] }) => plain),
    ])
    return { script: decidePlainScript, args }
  }
}

type Row = { readonly policies: readonly RedisPolicy[]; requests: number }

function isSame(some: readonly RedisPolicy[], others: readonly RedisPolicy[]): boolean {
  return some.length === others.length && some.every((policy, i) => policy === others[i])
}
