import { idOf, MAX_RULE_BANS, type ClientEntry, type EntryId } from './client-entry.ts'

export type PendingBan = { readonly entry: ClientEntry; readonly endsAtMs: number }

/** Bans that were made while Redis was unavailable, until they are written to it: at most `MAX_RULE_BANS`. */
export class PendingBans {
  /** The bans, oldest first. */
  readonly #bans = new Map<EntryId, PendingBan>()
  readonly #now: () => number

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Adds a ban. If there are too many, removes the bans that have ended or, if there are none, the oldest ban. */
  add(entry: ClientEntry, forMs: number): void {
    const nowMs = this.#now()
    if (this.#bans.size >= MAX_RULE_BANS) this.#removeEnded(nowMs)
    const [oldest] = this.#bans.keys()
    if (this.#bans.size >= MAX_RULE_BANS && oldest !== undefined) this.#bans.delete(oldest)
    this.#bans.set(idOf(entry), { entry, endsAtMs: nowMs + forMs })
  }

  /** Returns whether the ban was pending. */
  delete(id: EntryId): boolean {
    return this.#bans.delete(id)
  }

  /**
   * Writes the bans one after another, and removes each one that was written. Rejects if a ban cannot be written.
   *
   * @param write writes a ban that ends after `leftMs` milliseconds
   */
  async writeAll(write: (entry: ClientEntry, leftMs: number) => Promise<unknown>): Promise<void> {
    for (const [id, ban] of [...this.#bans]) {
      // The ban may have been lifted or changed while the one before was being written.
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
