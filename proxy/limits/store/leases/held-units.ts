import { LEASE_MS, type Lease } from './lease-store.ts'
import { RecentUse } from './recent-use.ts'

/** A lease that this process holds. */
export type HeldLease = {
  readonly lease: Lease
  /** When the units stop being used, and the earliest time at which their window can end, on this process's clock. */
  readonly endsAtMs: number
  readonly windowEndsAtMs: number
  /** Units that no request has used. */
  unused: number
  /** Whether the lease's units have been given back. Units that a request puts back later must then be given back, too. */
  isOver: boolean
}

/** Units taken for a request. */
export type TakenUnits = { readonly held: HeldLease; readonly units: number }

/** The units of one counter that this process may use without asking, oldest lease first. */
export class HeldUnits {
  readonly use = new RecentUse()
  /** Units of the quota that were left when the newest lease was taken. */
  remaining = 0
  #leases: HeldLease[] = []

  /** @param askedAtMs an instant before the store counted the units, so that a lease never outlasts its window */
  add(lease: Lease, askedAtMs: number): HeldLease {
    const held = {
      lease,
      endsAtMs: askedAtMs + Math.min(LEASE_MS, lease.leftMs),
      windowEndsAtMs: askedAtMs + lease.leftMs,
      unused: lease.units,
      isOver: false,
    }
    this.#leases.push(held)
    this.remaining = lease.remaining
    return held
  }

  /** Takes all the units from one lease, because a lease belongs to one window; undefined if no lease has enough. */
  take(units: number, nowMs: number): TakenUnits | undefined {
    for (const held of this.#leases) {
      if (held.unused < units || held.endsAtMs <= nowMs) continue
      held.unused -= units
      return { held, units }
    }
    return undefined
  }

  unusedAt(nowMs: number): number {
    let unused = 0
    for (const held of this.#leases) if (held.endsAtMs > nowMs) unused += held.unused
    return unused
  }

  /** Removes the leases that have ended or have no unused units, and returns them. */
  removeEnded(nowMs: number): readonly HeldLease[] {
    return this.#remove(({ unused, endsAtMs }) => endsAtMs <= nowMs || unused === 0)
  }

  removeAll(): readonly HeldLease[] {
    return this.#remove(() => true)
  }

  get isEmpty(): boolean {
    return this.#leases.length === 0
  }

  #remove(isOver: (held: HeldLease) => boolean): readonly HeldLease[] {
    const removed = this.#leases.filter(isOver)
    if (removed.length > 0) this.#leases = this.#leases.filter((held) => !isOver(held))
    for (const held of removed) held.isOver = true
    return removed
  }
}
