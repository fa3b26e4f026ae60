import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { FindAddresses, Found } from './find-addresses.ts'
import { NameError } from './name-error.ts'

/** The minimum time before a name without an address is looked up again. */
const RETRY_MS = 1_000

/** The minimum time before a name is looked up again after a failure, while its last addresses are still used. */
const RETRY_KNOWN_MS = 5_000

/**
 * How long after its TTL an answer is used without a new lookup. `ResolvedGroup` renews the answer when the TTL ends, and connections that
 * are opened meanwhile do not wait.
 */
const RENEWAL_MS = 2_000

/** How long a connection waits for a newer answer before it uses the known one. */
const PATIENCE_MS = 100

/** How long after its TTL an answer is used while there is no newer one (RFC 8767 section 5 suggests one to three days). */
const STALE_MS = 86_400_000

/** Names come from the settings, and from Redis if it announces nodes by name. Each takes about 500 bytes. */
const MAX_NAMES = 10_000
const TOO_MANY = 'too many names are being looked up'

type Entry = {
  found: Found | undefined
  failure: NameError | undefined
  /** When the name is looked up again. */
  dueMs: number
  /** Until when `found` is used without a new answer. */
  usableUntilMs: number
  /** The lookup in progress. Never rejects: the entry holds the result. */
  pending: Promise<void> | undefined
  pendingSinceMs: number
}

/**
 * The addresses of names, for all connections of this process. Connections need not wait for a name server: a known address is
 * used, and renewed in the background when its TTL is over. Each name has one lookup at a time, and an unanswered name does not
 * delay others.
 */
export class Names {
  readonly #find: FindAddresses
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()

  /**
   * @param options.find looks a name up now
   * @param options.now monotonic milliseconds
   */
  constructor(options: { readonly find: FindAddresses; readonly now: () => number }) {
    this.#find = options.find
    this.#now = options.now
  }

  /** Replaces `dns.lookup`, with the same arguments, for `net.connect` and everything built on it. */
  readonly lookup: LookupFunction = (name, { all, family }, callback) => {
    const entry = this.#entryOf(name)
    const answer = (): void => {
      const found = addressesOf(entry, family)
      const [first] = found
      if (!first) callback(entry.failure ?? new NameError('ENOTFOUND', name), all ? [] : '')
      else if (all) callback(null, found)
      else callback(null, first.address, first.family)
    }
    const waiting = this.#ready(name, entry)
    // Outside the promise, so that an exception in the callback does not become a rejection of the promise.
    if (waiting) void waiting.then(() => process.nextTick(answer))
    else process.nextTick(answer)
  }

  /**
   * Resolves to a valid answer: the last one, or the result of a lookup that this call starts or joins.
   *
   * @returns rejects with a NameError
   */
  async resolve(name: string): Promise<Found> {
    const entry = this.#entryOf(name)
    if (entry.pending || this.#now() >= entry.dueMs) await this.#lookUp(name, entry)
    if (entry.failure) throw entry.failure
    const { addresses } = entry.found ?? { addresses: [] }
    if (addresses.length === 0) throw new NameError('ENOTFOUND', name)
    return { addresses, forMs: Math.max(0, entry.dueMs - this.#now()) }
  }

  /** Whether connections to a name have addresses now: known ones, that were not denied, and have been confirmed within a day. */
  hasAddresses(name: string): boolean {
    return this.#entries.get(name)?.found !== undefined
  }

  /** Returns the entry of a name. If there is no room because all names are being looked up, the entry has failed, and is not kept. */
  #entryOf(name: string): Entry {
    const known = this.#entries.get(name)
    if (known) return known
    const entry: Entry = {
      found: undefined,
      failure: undefined,
      dueMs: -Infinity,
      usableUntilMs: -Infinity,
      pending: undefined,
      pendingSinceMs: 0,
    }
    if (this.#entries.size >= MAX_NAMES && !dropOldest(this.#entries))
      return { ...entry, failure: new NameError('EAI_AGAIN', name, new Error(TOO_MANY)), dueMs: Infinity }
    this.#entries.set(name, entry)
    return entry
  }

  /** Returns a promise that resolves when the entry has the addresses for the connection; undefined if it has them already. */
  #ready(name: string, entry: Entry): Promise<void> | undefined {
    const known = entry.found !== undefined && this.#now() < entry.usableUntilMs
    if (this.#now() < entry.dueMs + (known ? RENEWAL_MS : 0)) return undefined
    const pending = this.#lookUp(name, entry)
    if (!known) return pending
    const patienceMs = entry.pendingSinceMs + PATIENCE_MS - this.#now()
    return patienceMs > 0 ? atMost(patienceMs, pending) : undefined
  }

  #lookUp(name: string, entry: Entry): Promise<void> {
    if (entry.pending) return entry.pending
    entry.pendingSinceMs = this.#now()
    entry.pending = this.#renew(name, entry)
    return entry.pending
  }

  async #renew(name: string, entry: Entry): Promise<void> {
    try {
      entry.found = await this.#find(name)
      entry.failure = undefined
      entry.dueMs = this.#now() + entry.found.forMs
      entry.usableUntilMs = entry.dueMs + STALE_MS
    } catch (error) {
      entry.failure = error instanceof NameError ? error : new NameError('EAI_AGAIN', name, error)
      // The name is denied, so its last address may soon belong to another host. If there is no answer, it stays in use for a day.
      if (entry.failure.code === 'ENOTFOUND' || this.#now() >= entry.usableUntilMs) entry.found = undefined
      entry.dueMs = this.#now() + (entry.found ? RETRY_KNOWN_MS : RETRY_MS)
    }
    entry.pending = undefined
  }
}

/** @param family as `dns.lookup` takes it: 0 or undefined for both */
function addressesOf({ found }: Entry, family: LookupOptions['family']): LookupAddress[] {
  const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : 0
  return (found?.addresses ?? [])
    .map((address) => ({ address, family: isIP(address) }))
    .filter((each) => wanted === 0 || each.family === wanted)
}

/** Returns false if all names are being looked up, so that none can be dropped. */
function dropOldest(entries: Map<string, Entry>): boolean {
  for (const [name, { pending }] of entries) if (!pending) return entries.delete(name)
  return false
}

function atMost(limitMs: number, pending: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs)
    void pending.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
