import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { within } from '../../../shared/within.ts'
import type { SharedBy } from '../../limits/clients/client-table.ts'
import { reasonOf } from '../../limits/store/redis/errors.ts'
import { createPoll } from '../../limits/store/redis/feeds/poll.ts'
import { runScript, script } from '../../limits/store/redis/run-script.ts'
import { readReport, writeReport, type ReplicaReport, type Replicas } from './report.ts'

/** Maximum number of processes whose reports are kept. Further processes are not listed. */
const MAX_REPORTS = 128
/** Time after which a report expires. A process without a report is not listed. */
const REPORT_LASTS_MS = 3_000
/** Time for which processes keep reporting after a read. */
const ASKED_LASTS_MS = 3_000
/** Time after the first read within which every process notices it and reports. */
const FIRST_REPORTS_MS = 400

export type ExchangeOptions = SharedBy & {
  /** Identifies the gateway to which this process belongs. */
  readonly gateway: string
  readonly readOwn: () => Omit<ReplicaReport, 'gateway'>
  readonly log: Log
}

/**
 * Exchanges the reports of all processes on one Redis. Four times a second, each process checks whether an operator reads them, and writes
 * its own report only then. So requests cost nothing more, and processes need no connections to each other. The keys are all in one slot of
 * a cluster, and expire by themselves:
 *
 * - `<prefix>:{replicas}:asked`: exists while an operator reads the reports
 * - `<prefix>:{replicas}`: a hash of reports. Each has the time when it was written, by the clock of Redis, and its JSON
 * - `<prefix>:{replicas}:ends`: a sorted set of the processes, by the time when their reports expire
 */
export class ReplicaExchange {
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

  /** Resolves to undefined if Redis does not answer. Does not reject. */
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
      // Log each reason only once: the page reads twice a second.
      if (reason !== this.#failure) log.warn({ reason }, 'cannot read the reports of other replicas in Redis')
      this.#failure = reason
      return undefined
    }
  }

  /** Marks that an operator reads. Returns whether the mark already existed, and the reports. */
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
 * KEYS   the reports, the times when they expire, the mark that an operator reads
 * ARGV   the process, the lifetime of its report in milliseconds, the maximum number of reports, the report; from a process that
 *        reads, also the lifetime of the mark in milliseconds
 * reply  to a process that reads: the time in milliseconds, 1 if the mark already existed, otherwise 0, and all reports, each after
 *        its process; otherwise an empty list
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
