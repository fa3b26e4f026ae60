import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { within } from '../../../shared/within.ts'
import type { SharedBy } from '../../limits/clients/client-table.ts'
import { reasonOf } from '../../limits/store/redis/errors.ts'
import { createPoll } from '../../limits/store/redis/feeds/poll.ts'
import { runScript, script } from '../../limits/store/redis/run-script.ts'
import { readReport, writeReport, type ReplicaReport, type Replicas } from './report.ts'

/** Processes whose reports are kept; others are not heard of. */
const MAX_REPORTS = 128
/** A process that has not reported for as long is left out. */
const REPORT_LASTS_MS = 3_000
/** Reports go on for as long after somebody has asked. */
const ASKED_LASTS_MS = 3_000
/** Milliseconds after the first question, in which every process notices it and reports. */
const FIRST_REPORTS_MS = 400

export type ReplicaExchange = {
  /** Resolves to undefined if Redis does not answer. Does not reject. */
  read(): Promise<Replicas | undefined>
  close(): void
}

export type ExchangeOptions = SharedBy & {
  /** Names the gateway that this process is one of. */
  readonly gateway: string
  readonly readOwn: () => Omit<ReplicaReport, 'gateway'>
  readonly log: Log
}

/**
 * Reports of all processes on one Redis. Each looks four times a second whether somebody asks, and writes its own only then:
 * requests cost nothing more, and nobody is connected to anybody. Keys, all in one slot of a cluster, which end by themselves:
 *
 * - `<prefix>:{replicas}:asked`: there while somebody asks
 * - `<prefix>:{replicas}`: a hash of reports: when each was written, by the clock of Redis, and its JSON
 * - `<prefix>:{replicas}:ends`: a sorted set of the processes by when their reports end
 */
export function createReplicaExchange(options: ExchangeOptions): ReplicaExchange {
  return new RedisExchange(options)
}

class RedisExchange implements ReplicaExchange {
  readonly #options: ExchangeOptions
  readonly #reportsKey: string
  readonly #askedKey: string
  /** The id of this process. */
  readonly #id = randomUUID()
  readonly #poll: ReturnType<typeof createPoll>
  #reading: Promise<Replicas | undefined> | undefined
  /** The reason why the reports could not be read the last time; empty if they could. */
  #failure = ''

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#reportsKey = `${options.keyPrefix}:{replicas}`
    this.#askedKey = `${this.#reportsKey}:asked`
    const { redis, isAnswering, log } = options
    this.#poll = createPoll({
      look: async () => {
        if ((await redis.get(this.#askedKey)) !== null) await this.#report()
      },
      isAnswering: () => isAnswering(this.#reportsKey),
      key: this.#reportsKey,
      failed: 'cannot report to other replicas',
      log,
    })
  }

  read(): Promise<Replicas | undefined> {
    return (this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined)))
  }

  close(): void {
    this.#poll.close()
  }

  async #readAll(): Promise<Replicas | undefined> {
    const { isAnswering, gateway, log } = this.#options
    if (!isAnswering(this.#reportsKey)) return undefined
    try {
      let answer = await this.#ask()
      if (!answer.wasAsked) {
        await setTimeout(FIRST_REPORTS_MS)
        answer = await this.#ask()
      }
      this.#failure = ''
      return { own: gateway, reports: answer.reports }
    } catch (error) {
      const reason = reasonOf(error)
      // The page asks twice a second.
      if (reason !== this.#failure) log.warn({ reason }, 'cannot read the reports of other replicas in Redis')
      this.#failure = reason
      return undefined
    }
  }

  /** Whether others were asked before this, and what they have said. */
  async #ask(): Promise<{ wasAsked: boolean; reports: ReplicaReport[] }> {
    const reply = await within(this.#options.timeoutMs, this.#report(String(ASKED_LASTS_MS)))
    if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: no reports')
    const [nowMs, wasAsked, ...rest] = reply as readonly unknown[]
    const reports: ReplicaReport[] = []
    for (let at = 1; at < rest.length; at += 2) {
      const [, writtenAtMs, text = ''] = /^(\d+) (.*)$/s.exec(String(rest[at])) ?? []
      const read = readReport(text, Math.max(0, Number(nowMs) - Number(writtenAtMs)))
      if (read) reports.push(read)
    }
    return { wasAsked: wasAsked === 1, reports }
  }

  #report(...asking: readonly string[]): Promise<unknown> {
    const { redis, readOwn, gateway } = this.#options
    const keys = [this.#reportsKey, `${this.#reportsKey}:ends`, this.#askedKey]
    const text = writeReport({ ...readOwn(), gateway })
    const bounds = [String(REPORT_LASTS_MS), String(MAX_REPORTS)]
    return runScript(redis, reportScript, keys.length, [...keys, this.#id, ...bounds, text, ...asking])
  }
}

/**
 * KEYS   reports, their ends, the mark that somebody asks
 * ARGV   the process, for how many milliseconds its report counts, how many there can be, the report; where somebody asks,
 *        for how long
 * reply  where somebody asks: the time in milliseconds, 1 if somebody had asked before, otherwise 0, and all reports, each
 *        after its process; otherwise nothing
 */
const reportScript = script(`
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(nowMs))) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) or redis.call('ZCARD', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], ARGV[1], text(nowMs) .. ' ' .. ARGV[4])
  redis.call('ZADD', KEYS[2], text(nowMs + ARGV[2]), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
if not ARGV[5] then return {} end
local wasAsked = redis.call('GET', KEYS[3]) and 1 or 0
redis.call('SET', KEYS[3], '1', 'PX', ARGV[5])
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, wasAsked)
table.insert(reply, 1, text(nowMs))
return reply
`)
