import { idOf, MAX_RULE_BANS, type ClientEntry, type EntryId } from './client-entry.ts'

export type PendingBan = { readonly entry: ClientEntry; readonly endsAtMs: number }

/** Bans that were made while Redis was away, until they are written there: at most as many as there can be. */
export class PendingBans {
  /** The bans in the order in which they were made. */
  readonly #bans = new Map<EntryId, PendingBan>()
  readonly #now: () => number

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Adds a ban. If there are too many, those that have ended are removed first, then the oldest. */
  add(entry: ClientEntry, forMs: number): void {
    const nowMs = this.#now()
    if (this.#bans.size >= MAX_RULE_BANS) this.#removeEnded(nowMs)
    const [oldest] = this.#bans.keys()
    if (this.#bans.size >= MAX_RULE_BANS && oldest !== undefined) this.#bans.delete(oldest)
    this.#bans.set(idOf(entry), { entry, endsAtMs: nowMs + forMs })
  }

  /** Returns whether there was one. */
  delete(id: EntryId): boolean {
    return this.#bans.delete(id)
  }

  /**
   * Writes one after the other, and takes it out. Rejects with the first that cannot be written.
   *
   * @param write for so many milliseconds from now
   */
  async writeAll(write: (entry: ClientEntry, leftMs: number) => Promise<unknown>): Promise<void> {
    for (const [id, ban] of [...this.#bans]) {
      // While the one before was written somebody may have lifted or changed this one.
      if (this.#bans.get(id) !== ban) continue
      const leftMs = ban.endsAtMs - this.#now()
      if (leftMs > 0) await write(ban.entry, leftMs)
      if (this.#bans.get(id) === ban) this.#bans.delete(id)
    }
  }

  #removeEnded(nowMs: number): void {
    for (const [id, { endsAtMs }] of this.#bans) if (endsAtMs <= nowMs) this.#bans.delete(id)
  }
}
