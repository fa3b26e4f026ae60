import { chargesOfStates, type Charge, type Decision } from '../limiter.ts'
import { TwoGenerations } from '../store/two-generations.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'

/** A client that is over a limit now. */
export type ThrottledClient = {
  /** The policy's name. */
  readonly policy: string
  readonly partitionKey: string
  /** The client's label, if it has one. */
  readonly label?: string
  /** Requests over the limit that this process has seen: refused, or let through by a shadow policy. */
  readonly refusals: number
  /** Milliseconds until quota is freed. */
  readonly resetMs: number
  /** Whether the policy is in shadow mode, so that no request of the client was refused. */
  readonly isShadow: boolean
}

export type ThrottledClients = {
  /**
   * Records a decision that found a client over a limit, and forgets clients whose request passed: they may have requests left after a
   * refund, with another plan, or under a higher limit. `charges` are the charges that were decided.
   */
  record(charges: readonly Charge[], decision: Decision): void
  /** Lists clients by their number of refusals, most first; clients of shadow policies come last. */
  list(policyName: string | undefined, limit: number): ThrottledClient[]
  /** Forgets the client under the policy of this name, or under all policies. */
  forget(policyName: string | undefined, partitionKey: string): void
  /** Forgets the clients of all policies except the named ones. */
  keepPolicies(names: ReadonlySet<string>): void
  readUse(): TableUse
}

/**
 * Records which clients are over a limit, and how many requests over it they have sent, for operators. Costs a map lookup or two for each
 * limit of a request, and nothing while no client is over a limit.
 *
 * The number of clients is bounded (`TwoGenerations`). A client that is recorded again moves to the younger generation, so a frequent
 * client keeps its entry, with an exact count, no matter how many other clients come and go: its entry is dropped only after half the bound
 * of other clients were recorded since its last request. See docs/decisions/operators-interface.md.
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
      const refusedBy = decision.outcome === 'refused' ? decision.refusedBy.name : undefined
      for (const [at, { policy, exceeded, resetMs }] of decision.states.entries()) {
        const isOver = exceeded && (refusedBy === undefined || policy.name === refusedBy)
        const hasPassed = !exceeded && refusedBy === undefined && clients.size > 0
        if (!isOver && !hasPassed) continue
        const counted =
          decision.states.length === charges.length ? charges : chargesOfStates(charges, decision.states)
        const charge = counted[at]
        const nowMs = now()
        if (charge && isOver) count(charge, nowMs + resetMs, nowMs)
        else if (charge) clients.delete(policy.name, charge.partitionKey)
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

/** Orders clients by their number of refusals, most first; clients of shadow policies come last. */
function byRefusals(a: ThrottledClient, b: ThrottledClient): number {
  return Number(a.isShadow) - Number(b.isShadow) || b.refusals - a.refusals
}

/** Merges the lists of several processes, and adds up each client's refusals. */
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

/** Counts a refusal. After the recorded window has ended, counting starts again. */
function addRefusal(
  entry: Entry,
  { endsAtMs, nowMs, isShadow }: { endsAtMs: number; nowMs: number; isShadow: boolean },
): void {
  entry.refusals = entry.endsAtMs > nowMs ? entry.refusals + 1 : 1
  entry.endsAtMs = endsAtMs
  // The policy's mode may have changed since the last refusal.
  entry.isShadow = isShadow
}
