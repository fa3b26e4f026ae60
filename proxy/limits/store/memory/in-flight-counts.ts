import type { Policy } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { Counts } from './counts.ts'

export type InFlightCounts = Counts & {
  /** Counts a request that other counters have let through. */
  add(charge: Charge): void
  /** Takes a request out of the count. */
  remove(charge: Charge): void
  /** Frees what policies take up that have no request in flight. */
  prune(): void
  readonly size: number
}

/** How soon a client that has too many requests in flight may try again. Nobody knows when one of them ends. */
export const TRY_AGAIN_MS = 1000

/**
 * Counts requests in flight. There are never more entries than requests in flight, whose number is bounded elsewhere, so
 * nothing is dropped for room.
 */
export function createInFlightCounts(): InFlightCounts {
  /** By name: what a rule says of some clients only counts with what it says of the others. */
  const byPolicy = new Map<Policy['name'], Map<string, number>>()
  let size = 0

  function usedBy({ policy, partitionKey }: Charge): number {
    return byPolicy.get(policy.name)?.get(partitionKey) ?? 0
  }

  function add({ policy, partitionKey }: Charge): void {
    let clients = byPolicy.get(policy.name)
    if (!clients) byPolicy.set(policy.name, (clients = new Map<string, number>()))
    const used = clients.get(partitionKey) ?? 0
    if (used === 0) size += 1
    clients.set(partitionKey, used + 1)
  }

  function remove({ policy, partitionKey }: Charge): void {
    const clients = byPolicy.get(policy.name)
    const used = clients?.get(partitionKey) ?? 0
    if (used > 1) clients?.set(partitionKey, used - 1)
    else if (clients?.delete(partitionKey)) size -= 1
  }

  return {
    add,
    remove,
    prune() {
      for (const [name, clients] of byPolicy) if (clients.size === 0) byPolicy.delete(name)
    },
    get size() {
      return size
    },
    exceeds: (charge) => usedBy(charge) >= charge.policy.quota,

    charge(charge, units, _nowMs, counts, unsaved): PolicyState {
      const { policy } = charge
      const exceeded = usedBy(charge) >= policy.quota
      const isCounted = counts && !exceeded
      if (isCounted) add(charge)
      const remaining = Math.max(0, policy.quota - usedBy(charge))
      return isCounted
        ? {
            policy,
            exceeded,
            remaining,
            resetMs: TRY_AGAIN_MS,
            reservation: { charge, units, isLocal: unsaved, ticket: 0 },
          }
        : { policy, exceeded, remaining, resetMs: TRY_AGAIN_MS }
    },

    giveBack: ({ charge }) => remove(charge),

    read(charge) {
      const used = usedBy(charge)
      return used === 0 ? undefined : { used, resetMs: TRY_AGAIN_MS }
    },
  }
}
