import { windowFrom } from '../../../limits/algorithms/calendar/calendar-windows.ts'
import { ClientEntries } from '../../../limits/clients/client-entries.ts'
import {
  banLengthMs,
  idOf,
  MAX_RULE_BANS,
  partsOf,
  type ClientEntry,
} from '../../../limits/clients/client-entry.ts'
import { TwoGenerations } from '../../../limits/store/two-generations.ts'
import type { Policy } from '../../../policy.ts'

/** The bans by rules, on the log's own clock. */
export type LogBans = {
  /** The current bans. */
  readonly entries: ClientEntries
  /** Counts a refusal. Returns whether the client is banned because of it. */
  refused(policy: Policy, partitionKey: string): boolean
}

type Refusals = {
  count: number
  /** End of the count: one window after its first refusal, or `SETTLE_MS` after a ban. */
  countEndsAtMs: number
  /** The client is not banned again before this time. */
  onceEndsAtMs: number
  /** Consecutive bans. */
  times: number
  timesEndAtMs: number
  endsAtMs: number
}

/** The same times as in `limits/clients/ban-counts.ts`, whose library counts on the machine's clock. A test compares both files. */
const SETTLE_MS = 2_000
const ONCE_MS = 3_000
/** Maximum number of refused clients that are remembered, to bound memory. */
const MAX_CLIENTS = 200_000

/** @param now milliseconds of the log's clock */
export function createLogBans(now: () => number): LogBans {
  const entries = new ClientEntries(now)
  const clients = new TwoGenerations<string, Refusals>(MAX_CLIENTS)

  function refusalsOf(policy: string, partitionKey: string): Refusals {
    const known = clients.findYounger(policy, partitionKey)
    if (known) return known
    clients.makeRoom(now())
    const noted = clients.takeOlder(policy, partitionKey) ?? {
      count: 0,
      countEndsAtMs: 0,
      onceEndsAtMs: 0,
      times: 0,
      timesEndAtMs: 0,
      endsAtMs: Infinity,
    }
    clients.set(policy, partitionKey, noted)
    return noted
  }

  return {
    entries,
    refused(policy, partitionKey) {
      const { name, ban, mode } = policy
      if (!ban || mode === 'shadow') return false
      const nowMs = now()
      const client = refusalsOf(name, partitionKey)
      if (client.countEndsAtMs <= nowMs) {
        client.count = 0
        client.countEndsAtMs = nowMs + wholeSeconds(policy.averageWindowMs ?? windowFrom(policy, nowMs))
      }
      client.count += 1
      if (client.count < ban.after || client.onceEndsAtMs > nowMs) return false
      client.onceEndsAtMs = nowMs + ONCE_MS
      client.count = ban.after
      client.countEndsAtMs = nowMs + SETTLE_MS
      client.times = (client.timesEndAtMs > nowMs ? client.times : 0) + 1
      const forMs = banLengthMs(ban, client.times)
      client.timesEndAtMs = nowMs + wholeSeconds(forMs + ban.maxMs)
      const scope = ban.scope === 'rule' ? { policy: name } : { parts: partsOf(policy, partitionKey) }
      const entry: ClientEntry = { kind: 'ban', ...scope, partitionKey, by: 'rule', times: client.times }
      return entries.leftMs(idOf(entry)) >= forMs || entries.set(entry, forMs, MAX_RULE_BANS)
    },
  }
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000) * 1000
}
