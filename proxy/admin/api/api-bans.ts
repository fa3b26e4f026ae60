import { ErrorReply } from '../../../shared/error-replies.ts'
import { entryId, type Ban, type TimedEntry } from '../../limits/clients/client-entry.ts'
import { toSeconds } from './api-values.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { chargesOfClient, describeKey, keysOfClient, listedKeyOf } from './client-name.ts'
import { putEntries, removeEntries, type About, type EntryRoutesOptions } from './entry-request.ts'
import { withBody, withQuery, type Asked } from './read-body.ts'

/** The API for bans. docs/operations.md describes the formats. As in the rest of the API, only the body names a client. */
export function createBanRoutes(options: EntryRoutesOptions): ApiRoutes {
  const bans = new BanApi(options)
  return new Map<ApiPath, ApiRoute>([
    ['/api/bans', { GET: withQuery('entriesQuery', (asked) => bans.list(asked)) }],
    ['/api/clients/ban', { POST: withBody('banned', (asked) => bans.ban(asked)) }],
    ['/api/clients/unban', { POST: withBody('unbanned', (asked) => bans.unban(asked)) }],
  ])
}

class BanApi {
  readonly #options: EntryRoutesOptions

  constructor(options: EntryRoutesOptions) {
    this.#options = options
  }

  async list({ limit }: Asked<'entriesQuery'>): Promise<object> {
    const bans = await this.#options.entries.list('ban')
    return { total: bans.length, bans: bans.slice(0, limit).map(describeBan) }
  }

  async ban({ reason, for: forMs, ...about }: Asked<'banned'>): Promise<object> {
    const bans = this.#bansOf(about, reason)
    if (bans instanceof ErrorReply) return bans
    const failure = await putEntries(this.#options.entries, bans, forMs)
    return failure ?? { banned: bans.map((entry) => describeBan({ entry, leftMs: forMs })) }
  }

  /** Without a policy, lifts all bans of the client; if it is null, the ban from everything only. */
  async unban({ client, policy }: Asked<'unbanned'>): Promise<object> {
    const about = { client, policy: policy ?? undefined }
    const listed = await this.#options.entries.list('ban')
    const bans = this.#bansOf(about, undefined)
    const shown = this.#bansShownAs({ client, policy }, listed)
    if (bans instanceof ErrorReply && shown.length === 0) return bans
    const meant = bans instanceof ErrorReply ? [...shown] : [...bans, ...shown]
    if (policy === undefined) meant.push(...this.#bansUnderRules(client, listed))
    const lifted = await removeEntries(this.#options.entries, meant)
    if (lifted instanceof ErrorReply) return lifted
    return {
      unbanned: lifted.map(({ policy = null, partitionKey }) => ({
        client: describeKey(partitionKey),
        policy,
      })),
    }
  }

  /** Returns the bans that the list shows under this name of a client, including bans under removed rules. */
  #bansShownAs(
    { client, policy: name }: Asked<'unbanned'>,
    listed: readonly TimedEntry<Ban>[],
  ): readonly Ban[] {
    const key = listedKeyOf(client, this.#options.addresses)
    return listed
      .map(({ entry }) => entry)
      .filter(
        (entry) => entry.partitionKey === key && (name === undefined || (entry.policy ?? null) === name),
      )
  }

  /** Returns the client's bans under single rules. For rules with `ban`, includes bans that this process may not know of yet. */
  #bansUnderRules(client: unknown, listed: readonly TimedEntry<Ban>[]): readonly Ban[] {
    const { policies, addresses } = this.#options
    const charges = chargesOfClient({ client }, policies, addresses)
    if (charges instanceof ErrorReply) return []
    const ids = new Set(listed.map(({ id }) => id))
    return charges
      .filter(({ policy, partitionKey }) => policy.ban || ids.has(entryId('ban', policy.name, partitionKey)))
      .map(({ policy, partitionKey }) => ({ kind: 'ban', policy: policy.name, partitionKey, by: 'rule' }))
  }

  #bansOf(about: About, reason: string | undefined): readonly Ban[] | ErrorReply {
    const { policies, addresses } = this.#options
    const said = { by: 'operator', ...(reason !== undefined && { reason }) } as const
    if (about.policy === undefined) {
      const keys = keysOfClient(about.client, policies, addresses)
      return keys instanceof ErrorReply ? keys : keys.map((key) => ({ kind: 'ban', ...key, ...said }))
    }
    const charges = chargesOfClient(about, policies, addresses)
    if (charges instanceof ErrorReply) return charges
    return charges.map(({ policy, partitionKey }) => ({
      kind: 'ban',
      policy: policy.name,
      partitionKey,
      ...said,
    }))
  }
}

function describeBan({ entry, leftMs }: Pick<TimedEntry<Ban>, 'entry' | 'leftMs'>): object {
  const { policy, partitionKey, by, reason, times } = entry
  return {
    client: describeKey(partitionKey),
    policy: policy ?? null,
    expiresSeconds: toSeconds(leftMs),
    by,
    ...(times !== undefined && { times }),
    ...(reason !== undefined && { reason }),
  }
}
