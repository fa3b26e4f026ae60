import type { Log } from '../../../shared/log.ts'
import { windowFrom } from '../algorithms/calendar/calendar-windows.ts'
import { mayHashAddress } from '../keys/partition-key.ts'
import { chargesOfStates, type Charge, type Decision } from '../limiter.ts'
import type { RedisClient } from '../store/redis/run-script.ts'
import type { BanPolicy, Policy } from '../../policy.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { BanCounts, BanTerms } from './ban-counts.ts'
import { loggedClient, banLengthMs, MAX_RULE_BANS, partsOf, type TellOfBan } from './client-entry.ts'
import type { EntryStore } from './entry-store.ts'

/** A rule's ban at work: counts refusals, in the background, and bans clients with too many. */
export type Banning = {
  /** Called with each refusal under a policy that has a `ban`. */
  refused(policy: Policy, partitionKey: string): void
  /** The table of limits is another one now: whose policies stay, their refusals and bans stay counted. */
  usePolicies(policies: readonly Policy[]): void
  /** An operator has lifted a ban: the next one is a first one. Never rejects. */
  forgive(policyName: string, partitionKey: string): Promise<void>
}

type WithBan = Policy & { readonly ban: BanPolicy }

/**
 * @param options.redis where replicas count together; undefined: in this process
 * @param options.keyPrefix of `keyPrefixOf`
 */
export function createBanning(options: {
  readonly store: Pick<EntryStore, 'extend'>
  readonly policies: readonly Policy[]
  readonly redis: RedisClient | undefined
  readonly keyPrefix: string
  readonly isAnswering: (key: string) => boolean
  readonly telemetry: Pick<Telemetry, 'clientBanned'>
  /** Without it no line has an address. */
  readonly logAddresses: boolean
  /** Called with each ban that this process has made. */
  readonly onBan?: TellOfBan | undefined
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The time of day, in milliseconds since 1970. */
  readonly wallNow?: (() => number) | undefined
  readonly log: Log
}): Banning {
  const {
    store,
    redis,
    keyPrefix,
    isAnswering,
    telemetry,
    logAddresses,
    onBan,
    now,
    wallNow = Date.now,
    log,
  } = options
  let withBans = withBansOf(options.policies)
  const counts = new Map<string, Promise<BanCounts>>()

  /** Loaded at the first refusal that counts: a gateway without them starts sooner. */
  async function open(policy: WithBan): Promise<BanCounts> {
    const { name } = policy
    const { createBanCounts } = await import('./ban-counts.ts')
    return createBanCounts({
      ...termsOf(policy),
      redis,
      keyStart: `${keyPrefix}:ban:${name}`,
      isAnswering,
      now,
    })
  }

  function countsOf(policy: WithBan): Promise<BanCounts> {
    const known = counts.get(policy.name)
    if (known) return known
    const opened = open(policy)
    counts.set(policy.name, opened)
    opened.catch(() => counts.delete(policy.name))
    return opened
  }

  async function count(policy: WithBan, partitionKey: string): Promise<void> {
    const windowMs = policy.calendar && windowFrom(policy, wallNow())
    const times = await (await countsOf(policy)).countRefusal(partitionKey, windowMs)
    if (times === 0) return
    const { name, ban } = policy
    const forMs = banLengthMs(ban, times)
    const scope = ban.scope === 'rule' ? { policy: name } : { parts: partsOf(policy, partitionKey) }
    const entry = { kind: 'ban', ...scope, partitionKey, by: 'rule', times } as const
    const outcome = await store.extend(entry, forMs)
    if (outcome === 'full') {
      tellFull(name)
      return
    }
    telemetry.clientBanned(policy)
    const client =
      mayHashAddress(policy) && !logAddresses ? undefined : loggedClient(partitionKey, logAddresses)
    onBan?.(entry, forMs, client)
    log.info({ client, policy: name, times, forSeconds: forMs / 1000, outcome }, 'client banned')
  }

  let toldFullAtMs = -Infinity
  function tellFull(policy: string): void {
    const nowMs = now()
    if (nowMs - toldFullAtMs < 60_000) return
    toldFullAtMs = nowMs
    log.warn({ policy, most: MAX_RULE_BANS }, 'too many bans: clients are refused, but not banned')
  }

  return {
    usePolicies(policies) {
      withBans = withBansOf(policies)
      for (const [name, opened] of counts) {
        const policy = withBans.get(name)
        if (!policy) counts.delete(name)
        else opened.then((known) => known.useTerms(termsOf(policy))).catch(() => undefined)
      }
    },
    refused({ name }, partitionKey) {
      const policy = withBans.get(name)
      if (policy)
        count(policy, partitionKey).catch((err: unknown) => log.error({ err }, 'cannot ban a client'))
    },
    async forgive(policyName, partitionKey) {
      const policy = withBans.get(policyName)
      if (!policy || !(redis || counts.has(policyName))) return
      try {
        await (await countsOf(policy)).forgive(partitionKey)
      } catch (err) {
        log.error({ err }, 'cannot forget the bans of a client')
      }
    },
  }
}

/**
 * Reports the client, or clients, that a decision refused, if the refusing policy bans. They may have different quotas
 * under it.
 */
export function noteRefusal(
  { refused }: Pick<Banning, 'refused'>,
  charges: readonly Charge[],
  { refusedBy, states }: Decision & { outcome: 'refused' },
): void {
  if (!refusedBy.ban) return
  for (const [at, { policy, partitionKey }] of chargesOfStates(charges, states).entries())
    if (policy.name === refusedBy.name && states[at]?.exceeded) refused(policy, partitionKey)
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
