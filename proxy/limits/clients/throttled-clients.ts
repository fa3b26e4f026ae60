import { chargesOfStates, type Charge, type Decision } from '../limiter.ts'
import { TwoGenerations } from '../store/two-generations.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'

/** A client that is over a limit now. */
export type ThrottledClient = {
  /** The policy's name. */
  readonly policy: string
  readonly partitionKey: string
  /** Its label. */
  readonly label?: string
  /** Requests over the limit that this process has seen: refused, or let pass by a shadow. */
  readonly refusals: number
  /** Milliseconds until more is left. */
  readonly resetMs: number
  /** Whether the policy is a shadow: none of the client's requests was refused. */
  readonly isShadow: boolean
}

export type ThrottledClients = {
  /** Takes note of a decision, if it found a client over a limit. `charges` are those that were decided. */
  record(charges: readonly Charge[], decision: Decision): void
  /** Lists the clients that are refused before those under a shadow, and among both the most refused first. */
  list(policyName: string | undefined, limit: number): ThrottledClient[]
  /** Forgets the client under the policy of this name, or under all. */
  forget(policyName: string | undefined, partitionKey: string): void
  /** Forgets all clients of policies that have none of these names. */
  keepPolicies(names: ReadonlySet<string>): void
  readUse(): TableUse
}

/**
 * Clients that are over a limit, and how many requests over it they have sent, for operators to see. Costs a map lookup
 * for each request over a limit, and nothing for others.
 *
 * Their number is bounded (`TwoGenerations`), and a client that is noted again moves to the younger generation. So whoever
 * asks often stays, with an exact count, however many others come and go: an entry is dropped only when half the bound of
 * other clients were noted since its own last request. See docs/decisions/operators-interface.md.
 *
 * @param maxEntries at least 2
 * @param now milliseconds of a monotonic clock
 */
export function createThrottledClients(maxEntries: number, now: () => number): ThrottledClients {
  const clients = new TwoGenerations<string, Entry>(maxEntries)

  function count({ policy, partitionKey }: Charge, endsAtMs: number, nowMs: number): void {
    const { name: policyName, label } = policy
    const isShadow = policy.mode === 'shadow'
    const known = clients.findYounger(policyName, partitionKey)
    if (known) return addRefusal(known, { endsAtMs, nowMs, isShadow })
    clients.makeRoom(nowMs)
    const entry = clients.takeOlder(policyName, partitionKey) ?? {
      refusals: 0,
      endsAtMs,
      isShadow,
      ...(label !== undefined && { label }),
    }
    addRefusal(entry, { endsAtMs, nowMs, isShadow })
    clients.set(policyName, partitionKey, entry)
  }

  return {
    record(charges, decision) {
      if (decision.outcome === 'unavailable') return
      const isRefused = decision.outcome === 'refused'
      for (const [at, { policy, exceeded, resetMs }] of decision.states.entries()) {
        if (!exceeded || (isRefused && policy.name !== decision.refusedBy.name)) continue
        const counted =
          decision.states.length === charges.length ? charges : chargesOfStates(charges, decision.states)
        const charge = counted[at]
        const nowMs = now()
        if (charge) count(charge, nowMs + resetMs, nowMs)
      }
    },

    list(policyName, limit) {
      const nowMs = now()
      const found: ThrottledClient[] = []
      for (const [policy, entries] of clients.tables()) {
        if (policyName !== undefined && policy !== policyName) continue
        for (const [partitionKey, { endsAtMs, ...entry }] of entries) {
          if (endsAtMs > nowMs) found.push({ policy, partitionKey, ...entry, resetMs: endsAtMs - nowMs })
        }
      }
      return found.sort(byRefusals).slice(0, limit)
    },

    forget(policyName, partitionKey) {
      clients.deleteKey((name) => policyName === undefined || name === policyName, partitionKey)
    },

    keepPolicies(names) {
      clients.deleteOwners((name) => !names.has(name))
    },

    readUse: () => clients.readUse(),
  }
}

/** Orders clients that are refused before those under a shadow, and among both the most refused first. */
function byRefusals(a: ThrottledClient, b: ThrottledClient): number {
  return Number(a.isShadow) - Number(b.isShadow) || b.refusals - a.refusals
}

/** The lists of several processes as one: a client's refusals are the sum of theirs. */
export function sumThrottled(clients: readonly ThrottledClient[], limit: number): ThrottledClient[] {
  const sums = new Map<string, ThrottledClient>()
  for (const client of clients) {
    const name = `${client.policy} ${client.partitionKey}`
    const sum = sums.get(name)
    const refusals = client.refusals + (sum?.refusals ?? 0)
    const isShadow = client.isShadow && (sum?.isShadow ?? true)
    sums.set(name, {
      ...sum,
      ...client,
      refusals,
      isShadow,
      resetMs: Math.max(client.resetMs, sum?.resetMs ?? 0),
    })
  }
  return [...sums.values()].sort(byRefusals).slice(0, limit)
}

type Entry = { refusals: number; endsAtMs: number; isShadow: boolean; readonly label?: string }

/** Counts a refusal; in a window after the noted one, counting begins anew. */
function addRefusal(
  entry: Entry,
  { endsAtMs, nowMs, isShadow }: { endsAtMs: number; nowMs: number; isShadow: boolean },
): void {
  entry.refusals = entry.endsAtMs > nowMs ? entry.refusals + 1 : 1
  entry.endsAtMs = endsAtMs
  // The mode may have been changed since.
  entry.isShadow = isShadow
}
