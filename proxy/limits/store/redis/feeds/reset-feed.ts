import { randomUUID } from 'node:crypto'
import type { Log } from '../../../../../shared/log.ts'
import type { Charge } from '../../../limiter.ts'
import { runScript, script, type RedisClient } from '../run-script.ts'
import { createPoll, type Poll } from './poll.ts'

const RESETS_KEPT = 1000
const RESETS_KEPT_MS = 3_600_000

/** Maximum number of policies that an entry names. With more, it names no policy, which means all. This bounds the size of the list. */
const POLICIES_NAMED = 50

type ResetFeedOptions = {
  readonly redis: RedisClient
  /** The prefix of keys in Redis (`keyPrefixOf`): gateways of the same namespace share resets. */
  readonly keyPrefix: string
  /** Whether the server of this key is expected to answer. */
  readonly isAnswering: (key: string) => boolean
  /**
   * Called with a reset by another process, under the policy of this name or, without a name, under all policies. `isNew`: the
   * reset was made since the last poll; otherwise, it may be older.
   */
  readonly onReset: (partitionKey: string, policyName: string | undefined, isNew: boolean) => void
  /** Called if there may have been resets that can no longer be read. */
  readonly missed: () => void
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly log: Log
}

/**
 * The last client resets of all replicas and workers, in a list in Redis, newest first. From its construction until `close` it polls
 * the newest entry four times a second, and reads the list if that entry has changed.
 */
export class ResetFeed {
  /** The key of the list. */
  readonly key: string
  readonly #options: ResetFeedOptions
  readonly #poll: Poll
  /** The newest entry that has been read: '' if there was no entry, undefined before the first poll. */
  #newest: string | undefined
  #readAtMs: number
  /**
   * Ids of this process's own entries that it has not read back, oldest first: it has acted on them already. There are no more than the
   * list keeps, because older entries are not in the list.
   */
  readonly #own = new Set<string>()

  constructor(options: ResetFeedOptions) {
    const { keyPrefix, isAnswering, now, log } = options
    this.key = `${keyPrefix}:resets`
    this.#options = options
    this.#readAtMs = now()
    this.#poll = createPoll({
      look: () => this.#readNew(),
      isAnswering: () => isAnswering(this.key),
      key: this.key,
      failed: 'cannot read client resets made by other replicas',
      log,
    })
  }

  /** Publishes resets to all replicas. Rejects if Redis does not confirm it. */
  async announce(charges: readonly Charge[]): Promise<void> {
    const entries = entriesOf(charges)
    for (const { id } of entries) this.#own.add(id)
    for (const id of this.#own) {
      if (this.#own.size <= RESETS_KEPT) break
      this.#own.delete(id)
    }
    await runScript(this.#options.redis, announceScript, 1, [
      this.key,
      String(RESETS_KEPT - 1),
      String(RESETS_KEPT_MS),
      ...entries.map((entry) => JSON.stringify(entry)),
    ])
  }

  /** Reads new resets. Resolves even if that fails. */
  catchUp(): Promise<void> {
    return this.#poll.catchUp()
  }

  close(): void {
    this.#poll.close()
  }

  async #readNew(): Promise<void> {
    const { redis, missed, now } = this.#options
    const first = (await redis.lindex(this.key, 0)) ?? ''
    // The list may have expired since.
    if (now() - this.#readAtMs > RESETS_KEPT_MS / 2) this.#newest = undefined
    this.#readAtMs = now()
    if (first === this.#newest) return
    const texts = first === '' ? [] : await redis.lrange(this.key, 0, -1)
    const { unread, isNew } = unreadOf(texts, this.#newest)
    this.#newest = texts[0] ?? ''
    const entries = unread.map(readEntry)
    if (!isNew || entries.includes(undefined)) missed()
    for (const entry of entries) if (entry && !this.#own.delete(entry.id)) this.#emit(entry, isNew)
  }

  #emit({ client, policies }: Entry, isNew: boolean): void {
    const { onReset } = this.#options
    if (policies.length === 0) onReset(client, undefined, isNew)
    else for (const policyName of policies) onReset(client, policyName, isNew)
  }
}

/** Returns the entries before the newest one that has been read. If that one is not in the list, returns all entries, not as `isNew`. */
function unreadOf(
  texts: readonly string[],
  newest: string | undefined,
): { readonly unread: readonly string[]; readonly isNew: boolean } {
  const known = newest === '' && texts.length < RESETS_KEPT ? texts.length : texts.indexOf(newest ?? '')
  return known === -1 ? { unread: texts, isNew: false } : { unread: texts.slice(0, known), isNew: true }
}

/** Returns an entry for each client, with the policies under which it was reset, or without policies for all of them. */
function entriesOf(charges: readonly Charge[]): Entry[] {
  return Array.from(
    Map.groupBy(charges, ({ partitionKey }) => partitionKey),
    ([client, part]) => ({
      id: randomUUID(),
      client,
      policies: part.length > POLICIES_NAMED ? [] : part.map(({ policy }) => policy.name),
    }),
  )
}

/** `id` makes each entry unique, so that a reader finds in the list where it stopped. */
type Entry = { readonly id: string; readonly client: string; readonly policies: readonly string[] }

/**
 * KEYS the list; ARGV the index of the last entry to keep, the milliseconds for which the list is kept, and the entries to add. The
 * list is also shortened and given its expiry before the entries are added: if the user lacks the right to this, nothing is added
 * that would stay.
 */
const announceScript = script(`
redis.call('LTRIM', KEYS[1], 0, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for i = 3, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], 0, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`)

/** Parses an entry; undefined if a gateway did not write it. */
function readEntry(text: string): Entry | undefined {
  try {
    const entry: unknown = JSON.parse(text)
    return isEntry(entry) ? entry : undefined
  } catch {
    return undefined
  }
}

function isEntry(value: unknown): value is Entry {
  if (typeof value !== 'object' || value === null) return false
  const { id, client, policies } = value as Partial<Record<keyof Entry, unknown>>
  return (
    typeof id === 'string' &&
    typeof client === 'string' &&
    Array.isArray(policies) &&
    policies.every((policy) => typeof policy === 'string')
  )
}
