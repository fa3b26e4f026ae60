import { within } from '../../../../../shared/within.ts'
import type { Algorithm } from '../../../algorithms/algorithm.ts'
import type { RedisCommand } from '../../../algorithms/redis-counts.ts'
import { errorCodeOf, lacksRight, reasonOf } from '../errors.ts'
import { script, type RedisClient } from '../run-script.ts'

/** An algorithm that counts in Redis, and its features that policies use. */
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

/** `command` is undefined if the refusal is not about a command: no script may run at all, or counters cannot be shared at the address. */
export type Refusal = { readonly command: string | undefined; readonly reply: string }

/**
 * Checks whether the user may run these commands. Redis before 7.2 does not name the command that it refuses inside a script.
 *
 * KEYS   a key that nothing else uses
 * ARGV   for each command its name, the number of arguments after the key to try it with, and these arguments. Each command is
 *        tried on the same string, on which commands for lists and sets fail with WRONGTYPE, which requires the right to them. The
 *        string has an expiry, so that nothing stays no matter which command is refused
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
 * Finds the error with which Redis refuses one of the commands.
 *
 * @param key the start of a key that nothing else uses; in a cluster, its node is asked
 * @returns undefined if no command is refused, or if Redis does not answer in time
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

/** Rejects if scripts may not be run by their digest, as they are for requests. Redis checks this before it looks for the script. */
async function tryDigest(redis: RedisClient, key: string): Promise<void> {
  try {
    await redis.evalsha(unknownDigest, 1, key)
  } catch (error) {
    if (errorCodeOf(error) !== 'NOSCRIPT') throw error
  }
}

const unknownDigest = '0'.repeat(40)
