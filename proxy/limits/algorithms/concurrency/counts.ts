import type { Charge, PolicyState } from '../../limiter.ts'
import type { ClientSlots, MemoryCounts } from '../memory-counts.ts'

/** How soon a client with too many requests in flight may try again. It is not known when one of them will end. */
export const TRY_AGAIN_MS = 1000

/**
 * Counts requests in flight. A slot pool is not used: there are never more entries than requests in flight, whose number is
 * bounded elsewhere, and evicting an entry would let its client have more requests. A ticket has no meaning here.
 *
 * @param capacity reported as the capacity of the table, but not enforced
 */
export function createInFlightCounts(capacity: number): MemoryCounts & Required<Pick<MemoryCounts, 'add'>> {
  /** Requests in flight by table and client. */
  const tables = new Map<number, Map<string, number>>()
  let size = 0

  function usedBy(table: number, { partitionKey }: Charge): number {
    return tables.get(table)?.get(partitionKey) ?? 0
  }

  function add(table: number, { partitionKey }: Charge): void {
    let clients = tables.get(table)
    if (!clients) tables.set(table, (clients = new Map<string, number>()))
    const used = clients.get(partitionKey) ?? 0
    if (used === 0) size += 1
    clients.set(partitionKey, used + 1)
  }

  function peek(table: number, charge: Charge): PolicyState {
    const { policy } = charge
    const left = policy.quota - usedBy(table, charge)
    return { policy, exceeded: left <= 0, remaining: Math.max(0, left), resetMs: TRY_AGAIN_MS }
  }

  return {
    slots: slotsOf(tables),
    add,
    peek,
    exceeds: (table, charge) => usedBy(table, charge) >= charge.policy.quota,

    charge(table, charge, units, _nowMs, isLocal) {
      const { policy } = charge
      const remaining = policy.quota - usedBy(table, charge) - 1
      if (remaining < 0) return peek(table, charge)
      add(table, charge)
      const reservation = { charge, units, isLocal, ticket: 0 }
      return { policy, exceeded: false, remaining, resetMs: TRY_AGAIN_MS, reservation }
    },

    giveBack(table, { charge: { partitionKey } }) {
      const clients = tables.get(table)
      const used = clients?.get(partitionKey) ?? 0
      if (used > 1) clients?.set(partitionKey, used - 1)
      else if (clients?.delete(partitionKey)) size -= 1
    },

    read(table, charge) {
      const used = usedBy(table, charge)
      return used === 0 ? undefined : { used, resetMs: TRY_AGAIN_MS }
    },

    takePending: () => [],
    takeBackPending: () => false,
    readUse: () => ({ 'in-flight': { size, capacity, evictions: 0 } }),
  }
}

/** Nothing is ever pending sync or forgotten, because a process keeps track of its own requests in flight. */
function slotsOf(tables: Map<number, Map<string, number>>): ClientSlots {
  return {
    pendingSize: 0,
    pendingShards: () => [],
    reclaimInPassing: () => undefined,
    forget: () => false,
    dropTables(dropped) {
      const left = new Set<number>()
      for (const [table, clients] of tables) {
        if (clients.size === 0) tables.delete(table)
        else if (dropped.has(table)) left.add(table)
      }
      return left
    },
  }
}
