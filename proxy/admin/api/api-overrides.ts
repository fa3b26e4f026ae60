import { ErrorReply, errors } from '../../../shared/error-replies.ts'
import { algorithmOf } from '../../limits/algorithms/registry.ts'
import type { ClientOverride, NamedEntry, TimedEntry } from '../../limits/clients/client-entry.ts'
import type { Policy } from '../../policy.ts'
import { toSeconds } from './api-values.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { chargesOfClient, describeKey, listedKeyOf } from './client-name.ts'
import { putEntries, removeEntries, type EntryRoutesOptions } from './entry-request.ts'
import { withBody, withQuery, type Asked } from './read-body.ts'

/**
 * The API for overrides that are set at run time. docs/operations.md describes the formats. As in the rest of the API, only the body names
 * a client.
 */
export function createOverrideRoutes(options: EntryRoutesOptions): ApiRoutes {
  const overrides = new OverrideApi(options)
  return new Map<ApiPath, ApiRoute>([
    ['/api/overrides', { GET: withQuery('entriesQuery', (asked) => overrides.list(asked)) }],
    ['/api/clients/override', { POST: withBody('overridden', (asked) => overrides.override(asked)) }],
    [
      '/api/clients/override/remove',
      { POST: withBody('overrideRemoved', (asked) => overrides.remove(asked)) },
    ],
  ])
}

class OverrideApi {
  readonly #options: EntryRoutesOptions

  constructor(options: EntryRoutesOptions) {
    this.#options = options
  }

  async list({ limit }: Asked<'entriesQuery'>): Promise<object> {
    const overrides = await this.#options.entries.list('override')
    return { total: overrides.length, overrides: overrides.slice(0, limit).map(describeOverride) }
  }

  async override({ label, requests, for: forMs, ...about }: Asked<'overridden'>): Promise<object> {
    const { policies, addresses } = this.#options
    const charges = chargesOfClient(about, policies, addresses)
    if (charges instanceof ErrorReply) return charges
    const entries = charges.map(({ policy, partitionKey }): ClientOverride => ({
      kind: 'override',
      policy: policy.name,
      partitionKey,
      requests,
      ...(label !== undefined && { label }),
    }))
    const [first] = entries
    if (!first) return errors.requestsUnreadable
    const [fault] = charges.flatMap(({ policy }) => findQuotaFault(requests, policy) ?? [])
    if (fault) return fault
    const failure = await putEntries(this.#options.entries, entries, forMs)
    return failure ?? { override: describeOverride({ entry: first, leftMs: forMs }) }
  }

  async remove(about: Asked<'overrideRemoved'>): Promise<object> {
    const entries = await this.#entriesOf(about)
    if (entries instanceof ErrorReply) return entries
    const removed = await removeEntries(this.#options.entries, entries)
    return removed instanceof ErrorReply ? removed : { removed: removed.length > 0 }
  }

  /** Returns the entries to remove. If the rule is no longer in the table, finds them by the names that the list shows. */
  async #entriesOf(about: Asked<'overrideRemoved'>): Promise<readonly NamedEntry[] | ErrorReply> {
    const { policies, addresses } = this.#options
    const charges = chargesOfClient(about, policies, addresses)
    if (!(charges instanceof ErrorReply))
      return charges.map(({ policy, partitionKey }) => ({
        kind: 'override',
        policy: policy.name,
        partitionKey,
      }))
    const key = listedKeyOf(about.client, addresses)
    const shown = (await this.#options.entries.list('override'))
      .map(({ entry }) => entry)
      .filter(({ policy, partitionKey }) => policy === about.policy && partitionKey === key)
    return shown.length > 0 ? shown : charges
  }
}

function findQuotaFault(quota: number, policy: Policy): ErrorReply | undefined {
  const { name, cost } = policy
  // With a lower quota, no request could pass.
  const min = typeof cost?.reserve === 'number' ? cost.reserve : 1
  const { maxQuota } = algorithmOf(policy).rule
  if (quota >= min && quota <= maxQuota) return undefined
  return new ErrorReply(
    400,
    `requests must be a whole number from ${min} to ${maxQuota} under the rule ${name}`,
  )
}

function describeOverride({ entry, leftMs }: Pick<TimedEntry<ClientOverride>, 'entry' | 'leftMs'>): object {
  const { policy, partitionKey, requests, label } = entry
  return {
    client: describeKey(partitionKey),
    policy,
    requests,
    expiresSeconds: toSeconds(leftMs),
    ...(label !== undefined && { label }),
  }
}
