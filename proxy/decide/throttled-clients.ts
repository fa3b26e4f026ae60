import { chargesOfStates, type Charge, type Decision } from '../limiter/limiter.ts'
import { TwoGenerations } from '../limiter/two-generations.ts'
import type { TableUse } from '../telemetry/telemetry.ts'

/** A client that is over a limit now. */
export type ThrottledClient = {
  /** The policy's name. */
  readonly policy: string
  readonly partitionKey: string
  /** Requests over the limit that this process has seen: refused, or let pass by a shadow. */
  readonly refusals: number
  /** Milliseconds until more is left. */
  readonly resetMs: number
}

export type ThrottledClients = {
  /** Takes note of a decision, if it found a client over a limit. `charges` are those that were decided. */
  note(charges: readonly Charge[], decision: Decision): void
  /** Those with the most refusals first. */
  list(policyName: string | undefined, limit: number): ThrottledClient[]
  /** Under the policy of this name, or under all. */
  forget(policyName: string | undefined, partitionKey: string): void
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

  function count(policyName: string, partitionKey: string, endsAtMs: number, nowMs: number): void {
    const known = clients.findYounger(policyName, partitionKey)
    if (known) return addRefusal(known, endsAtMs, nowMs)
    clients.makeRoom(nowMs)
    const entry = clients.takeOlder(policyName, partitionKey) ?? { refusals: 0, endsAtMs }
    addRefusal(entry, endsAtMs, nowMs)
    clients.set(policyName, partitionKey, entry)
  }

  return {
    note(charges, decision) {
      if (decision.outcome === 'unavailable') return
      const isRefused = decision.outcome === 'refused'
      for (const [at, { policy, exceeded, resetMs }] of decision.states.entries()) {
        if (!exceeded || (isRefused && policy !== decision.refusedBy)) continue
        const charge = chargesOfStates(charges, decision.states)[at]
        const nowMs = now()
        if (charge) count(policy.name, charge.partitionKey, nowMs + resetMs, nowMs)
      }
    },

    list(policyName, limit) {
      const nowMs = now()
      const found: ThrottledClient[] = []
      for (const [policy, entries] of clients.tables()) {
        if (policyName !== undefined && policy !== policyName) continue
        for (const [partitionKey, { refusals, endsAtMs }] of entries) {
          if (endsAtMs > nowMs) found.push({ policy, partitionKey, refusals, resetMs: endsAtMs - nowMs })
        }
      }
      return found.sort(byRefusals).slice(0, limit)
    },

    forget(policyName, partitionKey) {
      clients.deleteKey((name) => policyName === undefined || name === policyName, partitionKey)
    },

    readUse: () => clients.readUse(),
  }
}

/** The most refusals first. */
export function byRefusals(a: ThrottledClient, b: ThrottledClient): number {
  return b.refusals - a.refusals
}

type Entry = { refusals: number; endsAtMs: number }

/** In a window after the one that was noted, counting begins anew. */
function addRefusal(entry: Entry, endsAtMs: number, nowMs: number): void {
  entry.refusals = entry.endsAtMs > nowMs ? entry.refusals + 1 : 1
  entry.endsAtMs = endsAtMs
}
