import type { TableUse } from '../../telemetry/telemetry.ts'

/** A place for a request of a client. */
export type Place = {
  readonly rule: string
  readonly key: string
  /** The number of places of the rule. */
  readonly max: number
  /** Whether all clients share the key, which may then take every place. */
  readonly isShared: boolean
}

/** The places taken under a rule, in total and by each client that holds any. */
type Taken = { total: number; max: number; readonly byKey: Map<string, number> }

/**
 * The places in which requests may wait in this process. Each rule has as many as its `waiting` says.
 *
 * A client takes another place only while it holds fewer than are free. So a single client gets half of them, two clients get a third
 * each, and no matter how many requests they send, a place is left for the next client ("dynamic queue length thresholds", Choudhury and
 * Hahne, 1998).
 */
export class Places {
  readonly #rules = new Map<string, Taken>()

  /** Takes a place, if there is one. */
  take(place: Place): boolean {
    if (!this.hasPlace(place)) return false
    const { rule, key, max } = place
    const taken = this.#rules.get(rule) ?? { total: 0, max, byKey: new Map<string, number>() }
    const own = taken.byKey.get(key) ?? 0
    taken.total += 1
    taken.max = max
    taken.byKey.set(key, own + 1)
    this.#rules.set(rule, taken)
    return true
  }

  /** Whether `take` would find a place. */
  hasPlace({ rule, key, max, isShared }: Place): boolean {
    const taken = this.#rules.get(rule)
    const free = max - (taken?.total ?? 0)
    return free > 0 && (isShared || (taken?.byKey.get(key) ?? 0) < free)
  }

  leave({ rule, key }: Pick<Place, 'rule' | 'key'>): void {
    const taken = this.#rules.get(rule)
    const own = taken?.byKey.get(key)
    if (!taken || own === undefined) return
    taken.total -= 1
    if (own > 1) taken.byKey.set(key, own - 1)
    else taken.byKey.delete(key)
    if (taken.total === 0) this.#rules.delete(rule)
  }

  /** Returns how many places the rules with waiting requests have, and how many are taken. */
  readUse(): TableUse {
    let size = 0
    let capacity = 0
    for (const { total, max } of this.#rules.values()) {
      size += total
      capacity += max
    }
    return { size, capacity, evictions: 0 }
  }
}
