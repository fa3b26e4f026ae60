import type { Charge, Decision } from '../limiter/limiter.ts'
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
 * Bounded by two generations, as `over-limit-cache.ts` is; but here a client that is noted again moves to the younger
 * one. So whoever asks often stays, with an exact count, however many others come and go: an entry is dropped only when
 * half the bound of other clients were noted since its own last request. See docs/decisions/operators-interface.md.
 *
 * @param maxEntries at least 2
 * @param now milliseconds of a monotonic clock
 */
export function createThrottledClients(maxEntries: number, now: () => number): ThrottledClients {
  let younger = createGeneration()
  let older = createGeneration()
  let evictions = 0

  function count(policyName: string, partitionKey: string, endsAtMs: number, nowMs: number): void {
    const known = findIn(younger, policyName, partitionKey)
    if (known) return addRefusal(known, endsAtMs, nowMs)
    if (younger.size >= maxEntries / 2) {
      evictions += countRunning(older, nowMs)
      older = younger
      younger = createGeneration()
    }
    const entry = findIn(older, policyName, partitionKey) ?? { refusals: 0, endsAtMs }
    remove(older, policyName, partitionKey)
    addRefusal(entry, endsAtMs, nowMs)
    let clients = younger.policies.get(policyName)
    if (!clients) younger.policies.set(policyName, (clients = new Map<string, Entry>()))
    clients.set(partitionKey, entry)
    younger.size += 1
  }

  return {
    note(charges, decision) {
      if (decision.outcome === 'unavailable') return
      const isRefused = decision.outcome === 'refused'
      for (const { policy, exceeded, resetMs } of decision.states) {
        if (!exceeded || (isRefused && policy !== decision.refusedBy)) continue
        const charge = charges.find((candidate) => candidate.policy === policy)
        const nowMs = now()
        if (charge) count(policy.name, charge.partitionKey, nowMs + resetMs, nowMs)
      }
    },

    list(policyName, limit) {
      const nowMs = now()
      const found: ThrottledClient[] = []
      for (const { policies } of [younger, older]) {
        for (const [policy, clients] of policies) {
          if (policyName !== undefined && policy !== policyName) continue
          for (const [partitionKey, { refusals, endsAtMs }] of clients) {
            if (endsAtMs > nowMs) found.push({ policy, partitionKey, refusals, resetMs: endsAtMs - nowMs })
          }
        }
      }
      return found.sort(byRefusals).slice(0, limit)
    },

    forget(policyName, partitionKey) {
      for (const generation of [younger, older]) {
        const names = policyName === undefined ? generation.policies.keys() : [policyName]
        for (const name of names) remove(generation, name, partitionKey)
      }
    },

    readUse: () => ({ size: younger.size + older.size, capacity: maxEntries, evictions }),
  }
}

/** The most refusals first. */
export function byRefusals(a: ThrottledClient, b: ThrottledClient): number {
  return b.refusals - a.refusals
}

type Entry = { refusals: number; endsAtMs: number }
type Generation = { readonly policies: Map<string, Map<string, Entry>>; size: number }

function createGeneration(): Generation {
  return { policies: new Map(), size: 0 }
}

function findIn({ policies }: Generation, policyName: string, partitionKey: string): Entry | undefined {
  return policies.get(policyName)?.get(partitionKey)
}

function remove(generation: Generation, policyName: string, partitionKey: string): void {
  if (generation.policies.get(policyName)?.delete(partitionKey)) generation.size -= 1
}

/** In a window after the one that was noted, counting begins anew. */
function addRefusal(entry: Entry, endsAtMs: number, nowMs: number): void {
  entry.refusals = entry.endsAtMs > nowMs ? entry.refusals + 1 : 1
  entry.endsAtMs = endsAtMs
}

function countRunning({ policies }: Generation, nowMs: number): number {
  let running = 0
  for (const clients of policies.values()) {
    for (const { endsAtMs } of clients.values()) if (endsAtMs > nowMs) running += 1
  }
  return running
}
