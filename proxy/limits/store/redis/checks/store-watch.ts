import { randomUUID } from 'node:crypto'
import type { Log } from '../../../../../shared/log.ts'
import type { Telemetry } from '../../../../telemetry/telemetry.ts'
import { runScript, script, type RedisClient, type RedisNode } from '../run-script.ts'

const CHECK_INTERVAL_MS = 10_000

/** After this long without a gateway, it no longer matters whether counters were lost meanwhile. */
const MARK_KEPT_MS = 86_400_000

const MAY_EVICT =
  'Redis evicts keys when its memory is full, so clients can start again from zero: set maxmemory-policy noeviction'
const EVICTED = 'Redis has evicted keys: the counters of some clients may have started again from zero'
const EMPTIED = 'Redis has lost all counters: it was flushed, has evicted keys, or came back without its data'

type StoreWatchOptions = {
  readonly redis: RedisClient
  /** The prefix of keys in Redis (`keyPrefixOf`). */
  readonly keyPrefix: string
  /** Whether Redis is expected to answer. */
  readonly isAnswering: () => boolean
  readonly log: Pick<Log, 'warn'>
  readonly telemetry: Pick<Telemetry, 'storeEvicted'>
}

/**
 * Logs problems that would go unnoticed otherwise, because Redis continues to answer: that it evicts keys, and that it has lost
 * all keys. Checks at each new connection, and every ten seconds until `close`. If the user lacks the right to `INFO`, evictions
 * are not noticed; without `GET` and `SET`, lost counters are not.
 */
export class StoreWatch {
  readonly #options: StoreWatchOptions
  readonly #timer: NodeJS.Timeout
  readonly #evictions = new Map<RedisNode, number>()
  /** The value of the mark at the last check. */
  #mark: string | undefined
  /** The policies that the last warning named; '' if no server evicts keys. */
  #warnedPolicies = ''
  #checking: Promise<unknown> | undefined

  constructor(options: StoreWatchOptions) {
    this.#options = options
    this.#timer = setInterval(this.#onTime, CHECK_INTERVAL_MS).unref()
    options.redis.on('ready', this.#onTime)
    this.#onTime()
  }

  /** Checks now, or waits for the check in progress. Never rejects. */
  check(): Promise<unknown> {
    if (!this.#options.isAnswering()) return Promise.resolve()
    this.#checking ??= Promise.allSettled([this.#checkMark(), this.#checkMemory()]).finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  close(): void {
    clearInterval(this.#timer)
    this.#options.redis.off('ready', this.#onTime)
  }

  readonly #onTime = (): void => void this.check()

  /**
   * Detects lost counters by a key, `<prefix>:mark`, which the first gateway sets to a random text and all gateways keep: another text
   * means that the first one is lost.
   */
  async #checkMark(): Promise<void> {
    const { redis, keyPrefix, log } = this.#options
    const args = [`${keyPrefix}:mark`, randomUUID(), String(MARK_KEPT_MS)]
    const found = await runScript(redis, markScript, 1, args)
    if (typeof found !== 'string') return
    if (this.#mark !== undefined && this.#mark !== found) log.warn(EMPTIED)
    this.#mark = found
  }

  async #checkMemory(): Promise<void> {
    const { redis } = this.#options
    const servers = 'nodes' in redis ? redis.nodes('master') : [redis]
    this.#warnOfPolicies(await Promise.all(servers.map((server) => server.info('memory'))))
    const stats = await Promise.all(
      servers.map(async (server) => [server, await server.info('stats')] as const),
    )
    this.#recordEvictions(new Map(stats.map(([server, text]) => [server, evictedKeys(text)])))
  }

  /** @param memory `INFO memory` of each server */
  #warnOfPolicies(memory: readonly string[]): void {
    const evicting = memory.filter(mayEvict).map((text) => fieldOf(text, 'maxmemory_policy'))
    const policies = [...new Set(evicting)].join()
    if (policies !== '' && policies !== this.#warnedPolicies)
      this.#options.log.warn({ policy: policies }, MAY_EVICT)
    this.#warnedPolicies = policies
  }

  /** @param counts keys that each server has evicted since it was started */
  #recordEvictions(counts: ReadonlyMap<RedisNode, number>): void {
    const { log, telemetry } = this.#options
    const isMore = [...counts].some(([server, count]) => count > (this.#evictions.get(server) ?? Infinity))
    this.#evictions.clear()
    for (const [server, count] of counts) this.#evictions.set(server, count)
    const evicted = [...counts.values()].reduce((sum, count) => sum + count, 0)
    telemetry.storeEvicted(evicted)
    if (isMore) log.warn({ evicted }, EVICTED)
  }
}

function mayEvict(memory: string): boolean {
  const policy = fieldOf(memory, 'maxmemory_policy')
  return policy !== undefined && policy !== 'noeviction' && fieldOf(memory, 'maxmemory') !== '0'
}

function evictedKeys(stats: string): number {
  return Number(fieldOf(stats, 'evicted_keys') ?? 0)
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1]
}

/**
 * KEYS   the mark
 * ARGV   the text to set if the key does not exist, and the milliseconds for which the key is kept from now on
 * reply  the text of the key
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
