import { within } from '../../../../../shared/within.ts'
import type { Algorithm } from '../../../algorithms/algorithm.ts'
import type { RedisCommand } from '../../../algorithms/redis-counts.ts'
import { errorCodeOf, lacksRight, reasonOf } from '../errors.ts'
import { script, type RedisClient } from '../run-script.ts'

/** The features of an algorithm that are counted in Redis. */
export type AlgorithmUse = {
  readonly algorithm: Algorithm
  readonly isReserved: boolean
  readonly readsPlans?: boolean
}

/** The commands that decisions need, with arguments to try them. */
export function commandsNeeded(used: readonly AlgorithmUse[], isCluster: boolean): RedisCommand[] {
  const commands = used.flatMap(({ algorithm, isReserved, readsPlans }) => {
    const { always, reserving = [], cluster = [] } = algorithm.redis.commands
    return [
      ...always,
      ...(isReserved ? reserving : []),
      ...(isCluster ? cluster : []),
      ...(readsPlans ? readPlans : []),
    ]
  })
  return [...new Map(commands.map((command) => [command[0], command])).values()]
}

const readPlans: readonly RedisCommand[] = [['GET'], ['MGET']]

/** `command` is undefined if it is not about one: not even a script may run, or the address cannot be shared. */
export type Refusal = { readonly command: string | undefined; readonly reply: string }

/**
 * Tries whether the user may run these commands. Redis before 7.2 does not name the one that it refuses inside a script.
 *
 * KEYS   a key that nothing else uses
 * ARGV   for each command its name, how many arguments it is tried with after the key, and these. Each is tried on the same
 *        string, on which commands for lists and sets fail with WRONGTYPE, which they could not without the right. The string is
 *        made with an expiry, so that nothing stays whatever is refused
 * reply  1, or the refused command and the error of Redis
 */
const rightsScript = script(`
local function refuses(command, ...)
  local reply = redis.pcall(command, ...)
  return type(reply) == 'table' and reply.err and not reply.err:find('WRONGTYPE', 1, true) and reply.err
end

local at = 1
while at <= #ARGV do
  local failure = refuses('SET', KEYS[1], 0, 'PX', 1000)
  if failure then return { 'SET', failure } end
  local command, count = ARGV[at], tonumber(ARGV[at + 1])
  if command == 'TIME' then
    failure = refuses(command)
  else
    failure = refuses(command, KEYS[1], unpack(ARGV, at + 2, at + 1 + count))
  end
  if failure then return { command, failure } end
  at = at + 2 + count
end
redis.call('DEL', KEYS[1])
return 1
`)

/**
 * The error with which Redis refuses one of the commands.
 *
 * @param key begins a key that nothing else uses; in a cluster its node is asked
 * @returns undefined if nothing is refused, or without an answer in time
 */
export async function findRefusalAt(
  redis: RedisClient,
  key: string,
  { commands, timeoutMs }: { readonly commands: readonly RedisCommand[]; readonly timeoutMs: number },
): Promise<Refusal | undefined> {
  const args = commands.flatMap(([name, ...tried]) => [name, String(tried.length), ...tried])
  const find = async (): Promise<Refusal | undefined> => {
    try {
      const [reply] = await Promise.all([
        redis.eval(rightsScript.source, 1, `${key}:rights`, ...args),
        tryDigest(redis, `${key}:rights`),
      ])
      return Array.isArray(reply) ? { command: String(reply[0]), reply: reasonOf(reply[1]) } : undefined
    } catch (error) {
      return lacksRight(error) ? { command: undefined, reply: reasonOf(error) } : undefined
    }
  }
  return within(timeoutMs, find()).catch(() => undefined)
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
