import type { Log } from '../../../../shared/log.ts'
import { within } from '../../../../shared/within.ts'
import { toState, type CounterAdmin, type CounterReading, type CounterState } from '../../counter-admin.ts'
import type { OverLimitCache } from '../over-limit-cache.ts'
import type { RedisWithFallback } from '../outage/redis-with-fallback.ts'
import type { Charge } from '../../limiter.ts'
import { TRY_AGAIN_MS } from '../../algorithms/concurrency/counts.ts'
import { describePolicy, keyOf } from './keys.ts'
import type { ResetFeed } from './feeds/reset-feed.ts'
import { debtReading } from '../../algorithms/token-bucket/counts.ts'
import { bucketsLua } from './buckets.ts'
import { reasonOf } from './errors.ts'
import { callsLua } from './checks/rights.ts'
import { runScript, script, type RedisClient } from './run-script.ts'
import { slidingLua } from './sliding.ts'

/**
 * How long an operator's question to Redis may take, who can wait longer than a request.
 *
 * @param storeTimeoutMs for a request
 */
export function operatorTimeoutMs(storeTimeoutMs: number): number {
  return Math.max(500, storeTimeoutMs)
}

/** Counters in one command: a few hundred microseconds of Redis's time. */
const COUNTERS_IN_COMMAND = 256

/**
 * Inspects and resets counters in Redis for operators.
 *
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.timeoutMs of `operatorTimeoutMs`
 */
export function createRedisOperations(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly timeoutMs: number
  readonly redisWithFallback: RedisWithFallback
  readonly overLimit: OverLimitCache
  readonly resetFeed: Pick<ResetFeed, 'announce'>
  readonly forget: CounterAdmin['forget']
  readonly log: Log
}): CounterAdmin {
  const { redis, keyPrefix, redisWithFallback, overLimit, resetFeed, forget, log, timeoutMs } = options

  function counterKey({ policy, partitionKey }: Charge): string {
    return keyOf(describePolicy(policy, keyPrefix), partitionKey)
  }

  async function read(charges: readonly Charge[]): Promise<CounterState[]> {
    const windows = charges.map(({ policy }) => String(policy.windowMs))
    const algorithms = charges.map(({ policy }) => describePolicy(policy, keyPrefix).algorithm).join('')
    const keys = charges.map(counterKey)
    const reply = await runScript(redis, readScript, keys.length, [...keys, ...windows, algorithms])
    if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
    const values = reply as readonly unknown[]
    return charges.map((charge, i) => {
      const used = values[2 * i]
      // The key does not hold a counter: decisions about it are made locally too.
      if (typeof used !== 'number') return readLocally(charge)
      const resetMs = Number(values[2 * i + 1])
      const reading =
        charge.policy.algorithm === 'token-bucket' ? debtReading(charge.policy, resetMs / 1000) : undefined
      const state = toState(charge.policy, 'store', reading ?? toReading(used, resetMs))
      // Where Redis has lost its counter, the client is refused on all the same.
      return (state.used ?? 0) < charge.policy.quota ? (knownOverLimit(charge) ?? state) : state
    })
  }

  /** A client that this process refuses without asking Redis. */
  function knownOverLimit(charge: Charge): CounterState | undefined {
    const { policy } = charge
    const resetMs = overLimit.findOverLimit(charge)
    return resetMs === undefined ? undefined : { policy, source: 'local', used: policy.quota, resetMs }
  }

  function readLocally(charge: Charge): CounterState {
    const { policy } = charge
    const known = knownOverLimit(charge)
    if (known) return known
    if (policy.onStoreError === 'local') return toState(policy, 'local', redisWithFallback.local.read(charge))
    return { policy, source: 'none', used: undefined, resetMs: undefined }
  }

  return {
    async inspect(charges) {
      if (redisWithFallback.storeState() === 'unavailable') return charges.map(readLocally)
      try {
        return (await within(timeoutMs, Promise.all(inCommands(charges).map(read)))).flat()
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'cannot read counters from Redis')
        return charges.map(readLocally)
      }
    },

    async reset(charges) {
      if (redisWithFallback.storeState() === 'unavailable') return 'unavailable'
      try {
        // Counters are deleted before other processes forget what they have cached, as otherwise they would cache it
        // again.
        await within(
          timeoutMs,
          Promise.all(
            inCommands(charges.filter(isCounted)).map((part) => redis.del(part.map(counterKey))),
          ).then(() => resetFeed.announce(charges)),
        )
        return 'done'
      } catch (error) {
        log.error({ reason: reasonOf(error) }, 'Redis did not confirm a client reset')
        return 'uncertain'
      } finally {
        for (const { policy, partitionKey } of charges) forget(policy.name, partitionKey)
      }
    },

    forget,
  }
}

/**
 * KEYS   the counters
 * ARGV   for each counter its window in milliseconds; then one string with a letter for each: `f` fixed, `s` sliding, `C`
 *        requests in flight, `T` a token bucket
 * reply  for each counter the requests that count, or an error text if it is not a counter; and the milliseconds until more is
 *        left, 0 where nothing counts; of a bucket 0 and its debt in microseconds
 */
const readScript = script(`
${callsLua}
${slidingLua}
local letters = ARGV[#KEYS + 1]
local reply = {}

local function readFixed(key)
  local counted = call('GET', key)
  if type(counted) == 'table' then return counted.err, 0 end
  if not counted then return 0, 0 end
  return tonumber(counted) or 'no number', math.max(0, call('PTTL', key))
end

local function readSliding(key, windowUs)
  local nowUs = readClockUs()
  local oldestUs, failure = oldestAfter(key, nowUs - windowUs)
  if failure then return failure, 0 end
  if not oldestUs then return 0, 0 end
  return call('LLEN', key), math.ceil((oldestUs + windowUs - nowUs) / 1000)
end

local function readInFlight(key)
  local held = call('ZCOUNT', key, math.floor(readClockUs() / 1000) + 1, '+inf')
  if type(held) == 'table' then return held.err, 0 end
  return held, held > 0 and ${TRY_AGAIN_MS} or 0
end

local nowUs
${bucketsLua}

-- What is used of a bucket is told by its debt: how long it takes until it is full, in microseconds.
local function readDebt(key)
  nowUs = readClockUs()
  local bucket, failure = readBucket(key)
  if failure then return failure, 0 end
  return 0, math.ceil(bucket.debtUs)
end

local readers = { f = readFixed, s = readSliding, c = readInFlight, t = readDebt }
for i, key in ipairs(KEYS) do
  reply[2 * i - 1], reply[2 * i] = readers[letters:sub(i, i):lower()](key, ARGV[i] * 1000)
end
return reply
`)

/** A reset does not end requests in flight: they are still counted. */
function isCounted({ policy }: Charge): boolean {
  return policy.algorithm !== 'concurrency'
}

/** The counters of each command are of one client, and so on one node. */
function inCommands(charges: readonly Charge[]): Charge[][] {
  const commands: Charge[][] = []
  for (const part of Map.groupBy(charges, ({ partitionKey }) => partitionKey).values()) {
    for (let at = 0; at < part.length; at += COUNTERS_IN_COMMAND)
      commands.push(part.slice(at, at + COUNTERS_IN_COMMAND))
  }
  return commands
}

function toReading(used: number, resetMs: number): CounterReading {
  return resetMs > 0 ? { used, resetMs } : undefined
}
