import {
  MAX_LEASE_AGE_MS,
  type Lease,
  type WantedUnits,
} from '../../../proxy/limits/store/leases/lease-store.ts'
import type { Charge, Decision, PolicyState } from '../../../proxy/limits/limiter.ts'
import { reservedUnits, type Policy } from '../../../proxy/policy.ts'

/** A period from a client's first request, or from a reset, until its window ends, or until the next reset. */
export type Window = {
  readonly name: string
  readonly beganAtMs: number
  readonly endsAtMs: number
  /** The largest quota that has applied. */
  quota: number
  counted: number
  /** Units of admitted requests, whether the store or a gateway decided about them. */
  admitted: number
  /** Units counted for requests whose decision has not reached the gateway yet. */
  unanswered: number
}

/** Counters of fixed windows that grant leases as the Redis scripts promise, and know how many units were really admitted. */
export type ModelCounters = {
  decide(charges: readonly Charge[]): Exclude<Decision, { outcome: 'unavailable' }>
  take(charge: Charge, wanted: WantedUnits): Lease
  giveBack(charge: Charge, lease: Lease, units: number): void
  reset(charge: Charge): void
  /** The current window of a client; undefined if the client has no counter. */
  windowOf(charge: Charge): Window | undefined
  /** All windows so far. */
  readonly windows: readonly Window[]
  /** Units leased in the window since a time. */
  leasedSince(window: Window, timeMs: number): number
}

/** @param options.keepsLeased false for a reset that wrongly forgets leases */
export function createModelCounters(
  now: () => number,
  options: { readonly keepsLeased: boolean },
): ModelCounters {
  const current = new Map<string, Window>()
  const windows: Window[] = []
  const leased = new Map<
    string,
    { readonly window: Window; readonly timeMs: number; readonly units: number }[]
  >()

  const nameOf = ({ policy, partitionKey }: Charge): string => `${policy.name} ${partitionKey}`
  const unitsOf = ({ policy, units }: Charge): number => units ?? reservedUnits(policy)

  function windowOf(charge: Charge): Window | undefined {
    const window = current.get(nameOf(charge))
    return window && window.endsAtMs > now() ? window : undefined
  }

  function begin(charge: Charge, counted: number): Window {
    const { quota } = charge.policy
    const window = {
      name: nameOf(charge),
      beganAtMs: now(),
      endsAtMs: endOf(charge.policy),
      quota,
      counted,
      admitted: 0,
      unanswered: 0,
    }
    current.set(window.name, window)
    windows.push(window)
    return window
  }

  function endOf({ windowMs, calendar }: Policy): number {
    return calendar ? (Math.floor(now() / windowMs) + 1) * windowMs : now() + windowMs
  }

  function count(charge: Charge, units: number): Window {
    const window = windowOf(charge) ?? begin(charge, 0)
    window.counted += units
    window.quota = Math.max(window.quota, charge.policy.quota)
    return window
  }

  return {
    windows,
    windowOf,
    decide(charges) {
      const states = charges.map((charge): PolicyState => {
        const { policy } = charge
        const window = windowOf(charge)
        const exceeded = (window?.counted ?? 0) + unitsOf(charge) > policy.quota
        const remaining = Math.max(0, policy.quota - (window?.counted ?? 0))
        return { policy, exceeded, remaining, resetMs: (window?.endsAtMs ?? endOf(policy)) - now() }
      })
      const refusing = states.find(({ exceeded }) => exceeded)
      if (refusing) return { outcome: 'refused', refusedBy: refusing.policy, states }
      for (const charge of charges) count(charge, unitsOf(charge))
      return { outcome: 'allowed', states }
    },
    take(charge, { units: wanted, share, min }) {
      const { quota } = charge.policy
      const before = windowOf(charge)
      const units = Math.min(wanted, Math.floor((quota - (before?.counted ?? 0)) / share))
      const takenAtUs = String(now() * 1000)
      if (units < min)
        return { units: 0, remaining: 0, leftMs: (before?.endsAtMs ?? now()) - now(), ticket: '', takenAtUs }
      const window = count(charge, units)
      const lately = leased.get(window.name) ?? []
      if (lately.push({ window, timeMs: now(), units }) === 1) leased.set(window.name, lately)
      const remaining = quota - window.counted
      return { units, remaining, leftMs: window.endsAtMs - now(), ticket: String(window.endsAtMs), takenAtUs }
    },
    giveBack(charge, { ticket, takenAtUs }, units) {
      const window = windowOf(charge)
      if (now() - Number(takenAtUs) / 1000 > MAX_LEASE_AGE_MS) return
      if (!window || Math.abs(window.endsAtMs - Number(ticket)) > Math.min(50, charge.policy.windowMs / 2))
        return
      window.counted -= units
      if (window.counted === 0) current.delete(window.name)
    },
    reset(charge) {
      const window = windowOf(charge)
      if (!window) return
      current.delete(window.name)
      const since = (Math.floor(now() / MAX_LEASE_AGE_MS) - 1) * MAX_LEASE_AGE_MS
      const lately = (leased.get(window.name) ?? []).filter(({ timeMs }) => timeMs >= since)
      const kept = Math.min(
        window.counted,
        lately.reduce((sum, { units }) => sum + units, 0),
      )
      if (kept > 0 && options.keepsLeased) begin(charge, kept)
    },
    leasedSince: (window, timeMs) =>
      (leased.get(window.name) ?? [])
        .filter((lease) => lease.window === window && lease.timeMs >= timeMs)
        .reduce((sum, { units }) => sum + units, 0),
  }
}
