import { randomUUID } from 'node:crypto'
import type { Log } from '../../../../../shared/log.ts'
import type { Telemetry } from '../../../../telemetry/telemetry.ts'
import { runScript, script, type RedisClient, type RedisNode } from '../run-script.ts'

const LOOK_EVERY_MS = 10_000

/** So long without a gateway, and it does not matter any more whether counters were lost meanwhile. */
const MARK_KEPT_MS = 86_400_000

const MAY_EVICT =
  'Redis evicts keys when its memory is full, so clients can start again from zero: set maxmemory-policy noeviction'
const EVICTED = 'Redis has evicted keys: the counters of some clients may have started again from zero'
const EMPTIED = 'Redis has lost all counters: it was flushed, has evicted keys, or came back without its data'

export type StoreWatch = {
  /** Looks now, or waits for the look that is under way. Never rejects. */
  look(): Promise<unknown>
  close(): void
}

/**
 * Logs problems that nobody would notice otherwise, as Redis continues to answer: that it evicts keys, and that it has lost them
 * all. Looks at each new connection, and every ten seconds.
 *
 * That all is lost is told by a key, `<prefix>:mark`, which the first gateway sets to a random text and all of them keep. Where a
 * right is missing, nothing is said: `INFO` for evictions, `GET` and `SET` for the key.
 *
 * @param options.isAnswering whether there is any use in asking
 */
export function watchStore(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly isAnswering: () => boolean
  readonly log: Log
  readonly telemetry: Pick<Telemetry, 'storeEvicted'>
}): StoreWatch {
  const { redis, keyPrefix, isAnswering, log, telemetry } = options
  let mark: string | undefined
  let policies = ''
  const evictedBy = new Map<RedisNode, number>()

  async function lookAtMark(): Promise<void> {
    const found = await runScript(redis, markScript, 1, [
      `${keyPrefix}:mark`,
      randomUUID(),
      String(MARK_KEPT_MS),
    ])
    if (typeof found !== 'string') return
    if (mark !== undefined && mark !== found) log.warn(EMPTIED)
    mark = found
  }

  async function lookAtMemory(): Promise<void> {
    const servers = 'nodes' in redis ? redis.nodes('master') : [redis]
    const texts = await Promise.all(servers.map((server) => server.info('memory')))
    const evicting = texts.filter(mayEvict).map((text) => fieldOf(text, 'maxmemory_policy'))
    const found = [...new Set(evicting)].join()
    if (found !== '' && found !== policies) log.warn({ policy: found }, MAY_EVICT)
    policies = found
    const stats = await Promise.all(servers.map((server) => server.info('stats')))
    const counts = stats.map((text) => Number(fieldOf(text, 'evicted_keys') ?? 0))
    const isMore = counts.some((count, i) => {
      const server = servers[i]
      return server && count > (evictedBy.get(server) ?? Infinity)
    })
    evictedBy.clear()
    for (const [i, server] of servers.entries()) evictedBy.set(server, counts[i] ?? 0)
    const evicted = counts.reduce((sum, count) => sum + count, 0)
    telemetry.storeEvicted(evicted)
    if (isMore) log.warn({ evicted }, EVICTED)
  }

  let looking: Promise<unknown> | undefined
  function look(): Promise<unknown> {
    if (!isAnswering()) return Promise.resolve()
    looking ??= Promise.allSettled([lookAtMark(), lookAtMemory()]).finally(() => {
      looking = undefined
    })
    return looking
  }
  const lookUnawaited = (): void => void look()

  const timer = setInterval(lookUnawaited, LOOK_EVERY_MS).unref()
  redis.on('ready', lookUnawaited)
  lookUnawaited()
  return {
    look,
    close() {
      clearInterval(timer)
      redis.off('ready', lookUnawaited)
    },
  }
}

function mayEvict(memory: string): boolean {
  const policy = fieldOf(memory, 'maxmemory_policy')
  return policy !== undefined && policy !== 'noeviction' && fieldOf(memory, 'maxmemory') !== '0'
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1]
}

/**
 * KEYS   the mark
 * ARGV   the text to set if the key does not exist, and for how many milliseconds it is kept from now on
 * reply  the text that is there
 */
const markScript = script(`
local found = redis.call('GET', KEYS[1])
if not found then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return ARGV[1]
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return found
`)
