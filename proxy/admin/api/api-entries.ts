import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import {
  entryId,
  idOf,
  type Ban,
  type ClientOverride,
  type TimedEntry,
} from '../../limits/clients/client-entry.ts'
import type { EntryOutcome } from '../../limits/clients/entry-store.ts'
import type { EntryOperations } from '../../limits/clients/client-table.ts'
import { algorithmOf } from '../../limits/algorithms/registry.ts'
import type { Policy } from '../../policy.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'
import { toSeconds } from './api-values.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { banned, entriesQuery, overridden, overrideRemoved, unbanned } from './bodies.ts'
import { chargesOfClient, describeKey, keysOfClient } from './client-name.ts'
import { readBody, readQuery } from './read-body.ts'

/**
 * The API for bans and overrides at run time; the formats are in docs/operations.md. As in the rest of the API a client is
 * named in the body only.
 *
 * @param options.policies the policies of the rules in force
 * @param options.addresses how clients are counted by their addresses
 */
export function createEntryRoutes(options: {
  readonly policies: readonly Policy[]
  readonly addresses: AddressReader
  readonly entries: EntryOperations
}): ApiRoutes {
  const { policies, addresses, entries } = options
  const byName = new Map(policies.map((policy) => [policy.name, policy]))

  /** Undefined for all rules. */
  function policyOf({ policy: name }: About): Policy | undefined | ErrorReply {
    return name === undefined ? undefined : (byName.get(name) ?? errors.noSuchPolicy)
  }

  function bansOf(fields: About, reason: string | undefined): readonly Ban[] | ErrorReply {
    const policy = policyOf(fields)
    if (isError(policy)) return policy
    const said = { by: 'operator', ...(reason !== undefined && { reason }) } as const
    if (!policy) {
      const keys = keysOfClient(fields.client, policies, addresses)
      return isError(keys) ? keys : keys.map((key) => ({ kind: 'ban', ...key, ...said }))
    }
    const charges = chargesOfClient(fields.client, policy, policies, addresses)
    if (isError(charges)) return charges
    return charges.map(({ partitionKey }) => ({ kind: 'ban', policy: policy.name, partitionKey, ...said }))
  }

  async function ban(body: unknown): Promise<unknown> {
    const read = readBody(banned, body)
    if ('error' in read) return read.error
    const { reason, for: forMs } = read.value
    const bans = bansOf(read.value, reason)
    if (isError(bans)) return bans
    for (const entry of bans) {
      const failure = failureOf(await entries.put(entry, forMs))
      if (failure) return failure
    }
    return { banned: bans.map((entry) => describeBan({ id: idOf(entry), entry, leftMs: forMs })) }
  }

  async function unban(body: unknown): Promise<unknown> {
    const read = readBody(unbanned, body)
    if ('error' in read) return read.error
    const { client, policy: name } = read.value
    const bans = bansOf(read.value, undefined)
    if (isError(bans)) return bans
    const meant: Ban[] = [...bans]
    if (name === undefined) meant.push(...(await bansUnderRules(client)))
    const lifted: object[] = []
    for (const entry of meant) {
      const { policy, partitionKey } = entry
      const outcome = await entries.remove(idOf(entry))
      const failure = failureOf(outcome)
      if (failure) return failure
      if (outcome === 'done') lifted.push({ client: describeKey(partitionKey), policy: policy ?? null })
    }
    return { unbanned: lifted }
  }

  /** Of rules that ban also what the process that is asked may not have heard of yet. */
  async function bansUnderRules(client: unknown): Promise<Ban[]> {
    const charges = chargesOfClient(client, undefined, policies, addresses)
    if (isError(charges)) return []
    const listed = new Set((await entries.list('ban')).map(({ id }) => id))
    return charges
      .filter(
        ({ policy, partitionKey }) => policy.ban || listed.has(entryId('ban', policy.name, partitionKey)),
      )
      .map(({ policy, partitionKey }) => ({ kind: 'ban', policy: policy.name, partitionKey, by: 'rule' }))
  }

  /** The policy and the client's key under it. */
  function chargeOf(fields: About): { policy: Policy; partitionKey: string } | ErrorReply {
    const policy = policyOf(fields)
    if (isError(policy)) return policy
    if (!policy) return errors.noSuchPolicy
    const charges = chargesOfClient(fields.client, policy, policies, addresses)
    if (isError(charges)) return charges
    return charges[0] ?? errors.clientPartsDiffer
  }

  async function override(body: unknown): Promise<unknown> {
    const read = readBody(overridden, body)
    if ('error' in read) return read.error
    const { label, requests, for: forMs } = read.value
    const charge = chargeOf(read.value)
    if (isError(charge)) return charge
    const { policy, partitionKey } = charge
    if (!isQuota(requests, policy)) return errors.requestsUnreadable
    const entry: ClientOverride = {
      kind: 'override',
      policy: policy.name,
      partitionKey,
      requests,
      ...(label !== undefined && { label }),
    }
    return (
      failureOf(await entries.put(entry, forMs)) ?? {
        override: describeOverride({ id: idOf(entry), entry, leftMs: forMs }),
      }
    )
  }

  async function removeOverride(body: unknown): Promise<unknown> {
    const read = readBody(overrideRemoved, body)
    if ('error' in read) return read.error
    const charge = chargeOf(read.value)
    if (isError(charge)) return charge
    const outcome = await entries.remove(entryId('override', charge.policy.name, charge.partitionKey))
    return failureOf(outcome) ?? { removed: outcome === 'done' }
  }

  return new Map<ApiPath, ApiRoute>([
    [
      '/api/bans',
      {
        GET: async (query) => {
          const read = readQuery(entriesQuery, query)
          if ('error' in read) return read.error
          const bans = (await entries.list('ban')).filter(isBan)
          return { total: bans.length, bans: bans.slice(0, read.value.limit).map(describeBan) }
        },
      },
    ],
    [
      '/api/overrides',
      {
        GET: async (query) => {
          const read = readQuery(entriesQuery, query)
          if ('error' in read) return read.error
          const overrides = (await entries.list('override')).filter(isOverride)
          return {
            total: overrides.length,
            overrides: overrides.slice(0, read.value.limit).map(describeOverride),
          }
        },
      },
    ],
    ['/api/clients/ban', { POST: (_query, body) => ban(body) }],
    ['/api/clients/unban', { POST: (_query, body) => unban(body) }],
    ['/api/clients/override', { POST: (_query, body) => override(body) }],
    ['/api/clients/override/remove', { POST: (_query, body) => removeOverride(body) }],
  ])
}

type About = { readonly client: unknown; readonly policy?: string | undefined }

function isQuota(value: number, policy: Policy): boolean {
  const { cost } = policy
  // No request could pass with less.
  const min = typeof cost?.reserve === 'number' ? cost.reserve : 1
  return value >= min && value <= algorithmOf(policy).rule.maxQuota
}

function isError(value: unknown): value is ErrorReply {
  return typeof value === 'object' && value !== null && 'reason' in value && 'body' in value
}

function failureOf(outcome: EntryOutcome): ErrorReply | undefined {
  if (outcome === 'full') return errors.tooManyEntries
  if (outcome === 'unavailable') return errors.storeAwayUnchanged
  return outcome === 'uncertain' ? errors.changeUncertain : undefined
}

function isBan(timed: TimedEntry): timed is TimedEntry<Ban> {
  return timed.entry.kind === 'ban'
}

function isOverride(timed: TimedEntry): timed is TimedEntry<ClientOverride> {
  return timed.entry.kind === 'override'
}

function describeBan({ entry, leftMs }: TimedEntry<Ban>): object {
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
