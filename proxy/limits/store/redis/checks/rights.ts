import { errorCodeOf, lacksRight, reasonOf } from '../errors.ts'
import { script, type RedisClient } from '../run-script.ts'

/**
 * How the scripts call Redis. `call` returns an error as a table, which the caller has to check. `must` is for
 * commands that fail only where the user has no right to them: the first that did is in `denied`.
 */
export const callsLua = `
local call = redis.pcall
local denied

local function must(command, ...)
  local reply = call(command, ...)
  if type(reply) == 'table' and reply.err then denied = denied or reply.err .. ' (' .. command .. ')' end
  return reply
end
`

const FIXED = ['SET', 'INCR', 'INCRBY', 'DECR', 'PTTL', 'PEXPIRE']
const RESERVED = ['TIME', 'DECRBY']
const BUCKETS = ['TIME', 'GET']
const SLIDING = ['TIME', 'LINDEX', 'LTRIM', 'RPUSH', 'RPOP', 'PEXPIREAT']
const IN_FLIGHT = ['TIME', 'ZADD', 'ZCARD', 'ZREM', 'ZREMRANGEBYSCORE']

/** The commands that decisions need, in the order in which `rightsScript` can try them. */
export function commandsNeeded(has: {
  readonly sliding: boolean
  readonly reserved: boolean
  readonly inFlight: boolean
  readonly buckets: boolean
  readonly cluster: boolean
}): string[] {
  const commands = [
    ...FIXED,
    ...(has.reserved ? RESERVED : []),
    ...(has.sliding && (has.cluster || has.reserved) ? ['LREM'] : []),
    ...(has.sliding ? SLIDING : []),
    ...(has.inFlight ? IN_FLIGHT : []),
    ...(has.buckets ? BUCKETS : []),
    'DEL',
  ]
  return [...new Set(commands)]
}

/** `command` is undefined where it is not about one: not even a script may run, or the address cannot be shared. */
export type Refusal = { readonly command: string | undefined; readonly reply: string }

/**
 * Tries whether the user may run these commands. Redis before 7.2 does not name the one that it refuses inside a script.
 *
 * KEYS   a key that nothing else uses
 * ARGV   the commands, SET first: it makes the key with an expiry, so that nothing stays whatever is refused. On
 *        the string that it makes, commands for lists and sets fail with WRONGTYPE, which they could not without the right
 * reply  1, or the command that is refused and what Redis says
 */
const rightsScript = script(`
local arguments = {
  SET = { 0, 'PX', 1000 }, INCRBY = { 1 }, PEXPIRE = { 1000 }, LINDEX = { 0 }, LTRIM = { 0, -1 }, RPUSH = { 0 },
  LREM = { 0, 0 }, PEXPIREAT = { 1 }, DECRBY = { 1 }, ZADD = { 0, 0 }, ZREM = { 0 }, ZREMRANGEBYSCORE = { 0, 0 },
}
for _, command in ipairs(ARGV) do
  local reply
  if command == 'TIME' then
    reply = redis.pcall(command)
  else
    reply = redis.pcall(command, KEYS[1], unpack(arguments[command] or {}))
  end
  if type(reply) == 'table' and reply.err and not reply.err:find('WRONGTYPE', 1, true) then return { command, reply.err } end
end
return 1
`)

/**
 * What Redis says where it refuses one of the commands.
 *
 * @param keys begin keys that nothing else uses; in a cluster so many that one is on every node
 * @returns undefined where nothing is refused, and where there is no answer in time
 */
export async function findRefusalAt(
  redis: RedisClient,
  keys: readonly string[],
  { commands, timeoutMs }: { readonly commands: readonly string[]; readonly timeoutMs: number },
): Promise<Refusal | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, undefined)
  })
  const refusals = keys.map(async (key): Promise<Refusal | undefined> => {
    try {
      const [reply] = await Promise.all([
        redis.eval(rightsScript.source, 1, `${key}:rights`, ...commands),
        tryDigest(redis, `${key}:rights`),
      ])
      return Array.isArray(reply) ? { command: String(reply[0]), reply: reasonOf(reply[1]) } : undefined
    } catch (error) {
      return lacksRight(error) ? { command: undefined, reply: reasonOf(error) } : undefined
    }
  })
  const found = await Promise.race([Promise.all(refusals), timeout])
  clearTimeout(timer)
  return found?.find((refusal) => refusal !== undefined)
}

/** Rejects where scripts may not be run by their digest, as they are for requests: Redis says so before it looks for one. */
async function tryDigest(redis: RedisClient, key: string): Promise<void> {
  try {
    await redis.evalsha(unknownDigest, 1, key)
  } catch (error) {
    if (errorCodeOf(error) !== 'NOSCRIPT') throw error
  }
}

const unknownDigest = '0'.repeat(40)
