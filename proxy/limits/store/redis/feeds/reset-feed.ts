import { randomUUID } from 'node:crypto'
import type { Log } from '../../../../../shared/log.ts'
import type { Charge } from '../../../limiter.ts'
import { runScript, script, type RedisClient } from '../run-script.ts'
import { createPoll } from './poll.ts'

/** Reads client resets made by other replicas and workers. */
export type ResetFeed = {
  /** The list of resets. */
  readonly key: string
  /** Publishes resets to all replicas. Rejects if Redis does not confirm it. */
  announce(charges: readonly Charge[]): Promise<void>
  /** Reads new resets. Resolves also if that fails. */
  catchUp(): Promise<void>
  close(): void
}

const RESETS_KEPT = 1000
const RESETS_KEPT_MS = 3_600_000

/** With more policies than this, an entry names none, which means all. This bounds the size of the list. */
const POLICIES_NAMED = 50

/**
 * A list of the last client resets in Redis. Each process polls the newest entry four times a second, and reads the
 * list if it has changed.
 *
 * @param options.keyPrefix of `keyPrefixOf`: resets are heard by gateways of the same namespace
 * @param options.isAnswering whether there is any use in asking
 * @param options.heard a reset by another process; without a policy's name it is of all policies. `isNew`: it was made
 *   since the last look, else perhaps earlier
 * @param options.missed resets may have been made of which nothing can be heard any more
 * @param options.now milliseconds of a monotonic clock
 */
export function createResetFeed(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly isAnswering: (key: string) => boolean
  readonly heard: (partitionKey: string, policyName: string | undefined, isNew: boolean) => void
  readonly missed: () => void
  readonly now: () => number
  readonly log: Log
}): ResetFeed {
  const { redis, keyPrefix, isAnswering, heard, missed, now, log } = options
  /** The list: the last resets of all gateways, newest first. */
  const resetsKey = `${keyPrefix}:resets`
  /** The newest entry that has been read: '' where there was none, undefined before the first look. */
  let newest: string | undefined
  let lookedAtMs = now()
  /** Entries of this process's own that it has not read back: it has acted on them already. */
  const own = new Set<string>()

  async function look(): Promise<void> {
    const first = (await redis.lindex(resetsKey, 0)) ?? ''
    // The list may have expired since.
    if (now() - lookedAtMs > RESETS_KEPT_MS / 2) newest = undefined
    lookedAtMs = now()
    if (first === newest) return
    const entries = first === '' ? [] : await redis.lrange(resetsKey, 0, -1)
    const known =
      newest === '' && entries.length < RESETS_KEPT ? entries.length : entries.indexOf(newest ?? '')
    const isNew = known !== -1
    const unread = (isNew ? entries.slice(0, known) : entries).map(readEntry)
    newest = entries[0] ?? ''
    if (!isNew || unread.includes(undefined)) missed()
    for (const entry of unread) {
      if (!entry || own.delete(entry.id)) continue
      if (entry.policies.length === 0) heard(entry.client, undefined, isNew)
      else for (const policyName of entry.policies) heard(entry.client, policyName, isNew)
    }
    own.clear()
  }

  const poll = createPoll({
    look,
    isAnswering: () => isAnswering(resetsKey),
    key: resetsKey,
    failed: 'cannot read client resets made by other replicas',
    log,
  })

  return {
    key: resetsKey,
    async announce(charges) {
      const entries = Array.from(
        Map.groupBy(charges, ({ partitionKey }) => partitionKey),
        ([client, part]): Entry => ({
          id: randomUUID(),
          client,
          policies: part.length > POLICIES_NAMED ? [] : part.map(({ policy }) => policy.name),
        }),
      )
      for (const { id } of entries) own.add(id)
      const limits = [String(RESETS_KEPT - 1), String(RESETS_KEPT_MS)]
      await runScript(redis, announceScript, 1, [
        resetsKey,
        ...limits,
        ...entries.map((entry) => JSON.stringify(entry)),
      ])
    },
    catchUp: () => poll.catchUp(),
    close: () => poll.close(),
  }
}

/** `id` makes each entry unique, so that a reader finds in the list where it stopped. */
type Entry = { readonly id: string; readonly client: string; readonly policies: readonly string[] }

/**
 * KEYS the list; ARGV the index of the last entry kept, for how many milliseconds, and the entries to add. The list
 * is shortened and given its expiry before, too: where the user lacks the right to that, nothing is added that would stay.
 */
const announceScript = script(`
redis.call('LTRIM', KEYS[1], 0, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for i = 3, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], 0, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`)

/** Undefined if the text is not the entry of a gateway. */
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
