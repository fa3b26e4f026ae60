import { createHash } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'

/** A connection to Redis or Valkey: one server, the master that Sentinel names, or a cluster. */
export type RedisClient = Redis | Cluster

export type RedisScript = { readonly source: string; readonly sha1: string }

/**
 * Decides any number of requests, each of one or several charges, each request atomically.
 *
 * KEYS   the counter of each charge, request by request
 * ARGV   for each charge its quota and its window in milliseconds; then one string with a letter for each charge:
 *        `E` enforced, `S` shadow, in lower case where the charge belongs to the same request as the one before
 * reply  for each charge what remains, or -1 where the quota is exceeded, and the milliseconds until its window ends;
 *        in place of the first charge's remainder the error text, where Redis has refused to touch one of the
 *        request's counters
 *
 * A counter is counted up first and set right after if that was too much: two commands a charge for what is allowed,
 * which is the most frequent answer by far, since the gateways themselves refuse clients known to be exhausted. Nothing
 * else runs in between, so nobody ever sees the wrong count. `pcall`, because one broken counter is no reason to fail
 * the other requests.
 */
export const decideScript = script(`
local call = redis.pcall
local charges = #KEYS
local kinds = ARGV[2 * charges + 1]
local reply = {}

-- Takes back what the charges from first to last have counted; of those exceeded nothing is.
local function undo(first, last)
  for i = first, last do
    local remaining = reply[2 * i - 1]
    if remaining >= 0 then
      if remaining + 1 == tonumber(ARGV[2 * i - 1]) then
        call('DEL', KEYS[i])
        reply[2 * i] = tonumber(ARGV[2 * i])
      else
        call('DECR', KEYS[i])
      end
      reply[2 * i - 1] = remaining + 1
    end
  end
end

local i = 1
while i <= charges do
  local first = i
  local refused = false
  local failure
  repeat
    local quota = tonumber(ARGV[2 * i - 1])
    local kind = kinds:byte(i)
    local counted = call('INCR', KEYS[i])
    if type(counted) ~= 'number' then
      failure = counted.err
    else
      local left = counted > 1 and call('PTTL', KEYS[i]) or -1
      if left < 0 then
        left = tonumber(ARGV[2 * i])
        call('PEXPIRE', KEYS[i], ARGV[2 * i])
      end
      if counted > quota then
        call('DECR', KEYS[i])
        reply[2 * i - 1] = -1
        refused = refused or kind == 69 or kind == 101
      else
        reply[2 * i - 1] = quota - counted
      end
      reply[2 * i] = left
    end
    i = i + 1
  until failure or i > charges or kinds:byte(i) < 97
  if failure then
    undo(first, i - 2)
    while i <= charges and kinds:byte(i) >= 97 do i = i + 1 end
    for charge = first, i - 1 do
      reply[2 * charge - 1] = failure
      reply[2 * charge] = 0
    end
  elseif refused then
    undo(first, i - 1)
  end
end
return reply
`)

/**
 * Adds to counters what was admitted without them, once, however often it is sent.
 *
 * KEYS   a mark that says that it was done; then the counters
 * ARGV   how long the mark is kept, in milliseconds; then for each counter the amount and the milliseconds left of its
 *        window, which count only where the counter is not there: a running window keeps its end
 * reply  1 where it was added now, 0 where it had been added before
 */
export const addOnceScript = script(`
if not redis.call('SET', KEYS[1], 1, 'PX', ARGV[1], 'NX') then return 0 end
for i = 2, #KEYS do
  local counted = redis.pcall('INCRBY', KEYS[i], ARGV[2 * i - 2])
  if type(counted) == 'number' and redis.call('PTTL', KEYS[i]) < 0 then
    redis.call('PEXPIRE', KEYS[i], ARGV[2 * i - 1])
  end
end
return 1
`)

/**
 * Takes back one from a counter whose window had so long to go when it was counted. Where the window has ended since,
 * and another has begun, more is left of that: then nothing is taken.
 *
 * KEYS   the counter
 * ARGV   the milliseconds that were left of its window
 */
export const giveBackScript = script(`
local left = redis.call('PTTL', KEYS[1])
if left < 0 or left > tonumber(ARGV[1]) then return 0 end
if redis.call('DECR', KEYS[1]) < 1 then redis.call('DEL', KEYS[1]) end
return 1
`)

/** Adds to one counter. KEYS the counter; ARGV amount, window in milliseconds; reply the count and what is left of it. */
export const addScript = script(`
local counted = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
return { counted, left }
`)

/**
 * Runs a script by its digest, and by its text where Redis does not have it: after a restart, a failover or a
 * `SCRIPT FLUSH`. A script that was not found has not been executed, so sending it again counts nothing twice.
 *
 * @param maySendText asked before the text is sent: nobody may be waiting any more
 */
export async function runScript(
  redis: RedisClient,
  { source, sha1 }: RedisScript,
  keyCount: number,
  keysAndArguments: string[],
  maySendText: () => boolean = () => true,
): Promise<unknown> {
  try {
    return await redis.evalsha(sha1, keyCount, keysAndArguments)
  } catch (error) {
    const isMissing = error instanceof Error && error.message.startsWith('NOSCRIPT')
    if (!isMissing || !maySendText()) throw error
    return redis.eval(source, keyCount, keysAndArguments)
  }
}

function script(source: string): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') }
}
