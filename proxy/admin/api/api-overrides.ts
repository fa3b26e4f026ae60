import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import { algorithmOf } from '../../limits/algorithms/registry.ts'
import { entryId, idOf, type ClientOverride, type TimedEntry } from '../../limits/clients/client-entry.ts'
import type { Charge } from '../../limits/limiter.ts'
import type { Policy } from '../../policy.ts'
import { toSeconds } from './api-values.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { chargesOfClient, describeKey } from './client-name.ts'
import { failureOf, isError, policyOf, type About, type EntryRoutesOptions } from './entry-request.ts'
import { readBody, readQuery } from './read-body.ts'

/**
 * The API for overrides that are set at run time; the formats are in docs/operations.md. As in the rest of the API a client is
 * named in the body only.
 */
export function createOverrideRoutes(options: EntryRoutesOptions): ApiRoutes {
  const overrides = new OverrideApi(options)
  return new Map<ApiPath, ApiRoute>([
    ['/api/overrides', { GET: (query) => overrides.list(query) }],
    ['/api/clients/override', { POST: (_query, body) => overrides.override(body) }],
    ['/api/clients/override/remove', { POST: (_query, body) => overrides.remove(body) }],
  ])
}

class OverrideApi {
  readonly #options: EntryRoutesOptions
  readonly #byName: ReadonlyMap<string, Policy>

  constructor(options: EntryRoutesOptions) {
    this.#options = options
    this.#byName = new Map(options.policies.map((policy) => [policy.name, policy]))
  }

  async list(query: URLSearchParams): Promise<unknown> {
    const read = await readQuery('entriesQuery', query)
    if ('error' in read) return read.error
    const overrides = (await this.#options.entries.list('override')).filter(isOverride)
    return { total: overrides.length, overrides: overrides.slice(0, read.value.limit).map(describeOverride) }
  }

  async override(body: unknown): Promise<unknown> {
    const read = await readBody('overridden', body)
    if ('error' in read) return read.error
    const { label, requests, for: forMs } = read.value
    const charges = this.#chargesOf(read.value)
    if (isError(charges)) return charges
    const entries = charges.map(({ policy, partitionKey }): ClientOverride => ({
      kind: 'override',
      policy: policy.name,
      partitionKey,
      requests,
      ...(label !== undefined && { label }),
    }))
    const [first] = entries
    if (!first || !charges.every(({ policy }) => isQuota(requests, policy))) return errors.requestsUnreadable
    for (const entry of entries) {
      const failure = failureOf(await this.#options.entries.put(entry, forMs))
      if (failure) return failure
    }
    return { override: describeOverride({ id: idOf(first), entry: first, leftMs: forMs }) }
  }

  async remove(body: unknown): Promise<unknown> {
    const read = await readBody('overrideRemoved', body)
    if ('error' in read) return read.error
    const charges = this.#chargesOf(read.value)
    if (isError(charges)) return charges
    let removed = false
    for (const { policy, partitionKey } of charges) {
      const outcome = await this.#options.entries.remove(entryId('override', policy.name, partitionKey))
      const failure = failureOf(outcome)
      if (failure) return failure
      removed ||= outcome === 'done'
    }
    return { removed }
  }

  /** At least one: a client whose value has several readings has as many keys. */
  #chargesOf(fields: About): readonly Charge[] | ErrorReply {
    const { policies, addresses } = this.#options
    const policy = policyOf(fields, this.#byName)
    if (isError(policy)) return policy
    return policy ? chargesOfClient(fields.client, policy, policies, addresses) : errors.noSuchPolicy
  }
}

function isQuota(value: number, policy: Policy): boolean {
  const { cost } = policy
  // No request could pass with less.
  const min = typeof cost?.reserve === 'number' ? cost.reserve : 1
  return value >= min && value <= algorithmOf(policy).rule.maxQuota
}

function isOverride(timed: TimedEntry): timed is TimedEntry<ClientOverride> {
  return timed.entry.kind === 'override'
}

function describeOverride({ entry, leftMs }: TimedEntry<ClientOverride>): object {
  const { policy, partitionKey, requests, label } = entry
  return {
    client: describeKey(partitionKey),
    policy,
    requests,
    expiresSeconds: toSeconds(leftMs),
    ...(label !== undefined && { label }),
  }
}
