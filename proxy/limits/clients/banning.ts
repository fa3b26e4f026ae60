import type { Log } from '../../../shared/log.ts'
import { windowFrom } from '../algorithms/calendar/calendar-windows.ts'
import { chargesOfStates, type Charge, type Decision } from '../limiter.ts'
import type { RedisClient } from '../store/redis/run-script.ts'
import type { BanPolicy, Policy } from '../../policy.ts'
import { boundLines } from '../../../shared/bounded-lines.ts'
import { createExceptionLog } from '../../../shared/exception-log.ts'
import { onceAMinute } from '../../telemetry/paced-lines.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { BanCounts, BanTerms } from './ban-counts.ts'
import { loggedClient, banLengthMs, MAX_RULE_BANS, partsOf, type OnBan } from './client-entry.ts'
import type { EntryStore } from './entry-store.ts'

export type BanningOptions = {
  readonly store: Pick<EntryStore, 'extend'>
  readonly policies: readonly Policy[]
  /** The Redis in which replicas count together; undefined: counts are kept in this process. */
  readonly redis: RedisClient | undefined
  /** The prefix of keys in Redis (`keyPrefixOf`). */
  readonly keyPrefix: string
  /** Whether the Redis server of a key is answering. */
  readonly isAnswering: (key: string) => boolean
  readonly telemetry: Pick<Telemetry, 'clientBanned'>
  /** Whether log lines may contain clients' addresses. */
  readonly logAddresses: boolean
  /** Called with each ban that this process makes. */
  readonly onBan?: OnBan | undefined
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The time of day, in milliseconds since 1970. */
  readonly wallNow?: (() => number) | undefined
  readonly log: Log
}

type WithBan = Policy & { readonly ban: BanPolicy }

/** Counts refusals under rules with `ban` in the background, and bans clients that exceed the allowed number. */
export class Banning {
  readonly #options: BanningOptions
  /** Bounds the log lines, because a client that makes up keys is banned under each of them. */
  readonly #mayLog: () => boolean
  readonly #mayLogFull: () => boolean
  readonly #logException: ReturnType<typeof createExceptionLog>
  /** The policies of the current table that have bans, by name. */
  #withBans: ReadonlyMap<string, WithBan>
  /** By policy name; created at the policy's first refusal. */
  readonly #counts = new Map<string, Promise<BanCounts>>()

  constructor(options: BanningOptions) {
    this.#options = options
    this.#mayLog = boundLines((leftOut) => options.log.info({ leftOut }, 'ban log lines suppressed'))
    this.#mayLogFull = onceAMinute(options.now)
    this.#logException = createExceptionLog(options.log)
    this.#withBans = withBansOf(options.policies)
  }

  /** Call it when another limits table takes effect. The counts of policies that it keeps are kept, too. */
  usePolicies(policies: readonly Policy[]): void {
    this.#withBans = withBansOf(policies)
    for (const [name, opened] of this.#counts) {
      const policy = this.#withBans.get(name)
      if (!policy) this.#counts.delete(name)
      else opened.then((known) => known.useTerms(termsOf(policy))).catch(() => undefined)
    }
  }

  /** Called with each refusal under a policy that has a `ban`. */
  refused({ name }: Policy, partitionKey: string): void {
    const policy = this.#withBans.get(name)
    if (!policy) return
    this.#count(policy, partitionKey).catch((err: unknown) =>
      this.#logException({ err }, 'cannot ban a client'),
    )
  }

  /** Call it when an operator lifts a ban: the next ban of the client counts as its first. Never rejects. */
  async forgive(policyName: string, partitionKey: string): Promise<void> {
    const { redis } = this.#options
    const policy = this.#withBans.get(policyName)
    if (!policy || !(redis || this.#counts.has(policyName))) return
    try {
      await (await this.#countsOf(policy)).forgive(partitionKey)
    } catch (err) {
      this.#logException({ err }, 'cannot reset how often a client was banned')
    }
  }

  async #count(policy: WithBan, partitionKey: string): Promise<void> {
    const { wallNow = Date.now } = this.#options
    const windowMs = policy.calendar && windowFrom(policy, wallNow())
    const times = await (await this.#countsOf(policy)).countRefusal(partitionKey, windowMs)
    if (times > 0) await this.#ban(policy, partitionKey, times)
  }

  /** @param times number of bans of the client in a row, including this one */
  async #ban(policy: WithBan, partitionKey: string, times: number): Promise<void> {
    const { store, telemetry, onBan, logAddresses, log } = this.#options
    const { name, ban } = policy
    const forMs = banLengthMs(ban, times)
    const scope = ban.scope === 'rule' ? { policy: name } : { parts: partsOf(policy, partitionKey) }
    const entry = { kind: 'ban', ...scope, partitionKey, by: 'rule', times } as const
    const outcome = await store.extend(entry, forMs)
    if (outcome === 'full') {
      if (this.#mayLogFull())
        log.warn({ policy: name, most: MAX_RULE_BANS }, 'too many bans: clients are refused, but not banned')
      return
    }
    telemetry.clientBanned(policy)
    const client = loggedClient(partitionKey, logAddresses, [policy])
    onBan?.(entry, forMs, client)
    if (this.#mayLog())
      log.info({ client, policy: name, times, forSeconds: forMs / 1000, outcome }, 'client banned')
  }

  #countsOf(policy: WithBan): Promise<BanCounts> {
    const { name } = policy
    const known = this.#counts.get(name)
    if (known) return known
    const opened = openCounts(policy, this.#options)
    this.#counts.set(name, opened)
    opened.catch(() => this.#counts.delete(name))
    return opened
  }
}

/** The module is loaded at the first refusal that counts, so that the gateway starts faster. */
async function openCounts(
  policy: WithBan,
  { redis, keyPrefix, isAnswering, now }: BanningOptions,
): Promise<BanCounts> {
  const { BanCounts } = await import('./ban-counts.ts')
  return new BanCounts({
    ...termsOf(policy),
    redis,
    keyStart: `${keyPrefix}:ban:${policy.name}`,
    isAnswering,
    now,
  })
}

/**
 * Reports the clients that a decision refused, if the refusing policy has a `ban`. Compares policies by name, because clients may have
 * different quotas under the same policy.
 */
export function recordRefusal(
  banning: Pick<Banning, 'refused'>,
  charges: readonly Charge[],
  { refusedBy, states }: Decision & { outcome: 'refused' },
): void {
  if (!refusedBy.ban) return
  for (const [at, { policy, partitionKey }] of chargesOfStates(charges, states).entries())
    if (policy.name === refusedBy.name && states[at]?.exceeded) banning.refused(policy, partitionKey)
}

function withBansOf(policies: readonly Policy[]): ReadonlyMap<string, WithBan> {
  return new Map(policies.filter(hasBan).map((policy) => [policy.name, policy]))
}

function termsOf({ ban, windowMs, averageWindowMs = windowMs }: WithBan): BanTerms {
  return { ban, windowMs: averageWindowMs }
}

function hasBan(policy: Policy): policy is WithBan {
  return policy.ban !== undefined && policy.mode === 'enforce'
}
