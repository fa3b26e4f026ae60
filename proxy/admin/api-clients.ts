import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { AddressReader } from '../request/client-address.ts'
import type { CounterState } from '../limiter/counter-admin.ts'
import type { Charge } from '../limiter/limiter.ts'
import { partName, type ListEntry, type Policy, type RoutePattern, type Rule } from '../policy.ts'
import type { ApiRoutes } from './api.ts'
import { chargesOfClient, describeClient } from './client-name.ts'
import type { ClientOperations } from './client-operations.ts'

const LISTED_UNLESS_TOLD = 100
const LISTED_AT_MOST = 1000

/**
 * The API for limits and clients; the formats are in docs/operations.md. A client is named in the body, never in the
 * path or the query: those end up in logs and histories, and a client's name may be a secret.
 *
 * @param options.rules those that run: none with limiting switched off
 * @param options.addresses how clients are counted by their addresses
 */
export function createClientRoutes(options: {
  readonly limitsEnabled: boolean
  readonly rules: readonly Rule[]
  readonly addresses: AddressReader
  readonly clients: ClientOperations
}): ApiRoutes {
  const { limitsEnabled, rules, addresses, clients } = options
  const policies = rules.map(({ policy }) => policy)
  const byName = new Map(policies.map((policy) => [policy.name, policy]))
  const table = { limitsEnabled, limits: rules.map(describeRule) }

  const readCharges = (body: unknown): readonly Charge[] | ErrorReply => {
    if (!isQuestion(body)) return errors.questionUnreadable
    const policy = body.policy === undefined ? undefined : byName.get(body.policy)
    if (body.policy !== undefined && !policy) return errors.noSuchPolicy
    return chargesOfClient(body.client, policy, policies, addresses)
  }

  return new Map<string, ApiRoutes extends ReadonlyMap<string, infer Route> ? Route : never>([
    ['/api/limits', { GET: () => table }],
    [
      '/api/clients/inspect',
      {
        POST: async (_query, body) => {
          const charges = readCharges(body)
          if (!isCharges(charges)) return charges
          return { states: (await clients.inspect(charges)).map(describeState) }
        },
      },
    ],
    [
      '/api/clients/reset',
      {
        POST: async (_query, body) => {
          const charges = readCharges(body)
          if (!isCharges(charges)) return charges
          const outcome = await clients.reset(charges)
          if (outcome === 'unavailable') return errors.storeAway
          if (outcome === 'uncertain') return errors.resetUncertain
          return { reset: charges.map(({ policy }) => policy.name) }
        },
      },
    ],
    [
      '/api/clients/limited',
      {
        GET: async (query) => {
          const policyName = query.get('policy') ?? undefined
          if (policyName !== undefined && !byName.has(policyName)) return errors.noSuchPolicy
          const limit = readLimit(query.get('limit'))
          if (limit === undefined) return errors.listLimitUnreadable
          const found = await clients.listLimited(policyName, limit)
          return {
            scope: 'gateway',
            clients: found.map(({ policy, partitionKey, refusals, resetMs }) => ({
              policy,
              client: describeClient(byName.get(policy), partitionKey),
              refusals,
              resetSeconds: toSeconds(resetMs),
            })),
          }
        },
      },
    ],
  ])
}

type Question = { readonly policy?: string; readonly client: unknown }

function isQuestion(body: unknown): body is Question {
  if (typeof body !== 'object' || body === null || !('client' in body)) return false
  if (Object.keys(body).some((field) => field !== 'policy' && field !== 'client')) return false
  return !('policy' in body) || typeof body.policy === 'string'
}

function isCharges(value: readonly Charge[] | ErrorReply): value is readonly Charge[] {
  return Array.isArray(value)
}

function readLimit(text: string | null): number | undefined {
  if (text === null) return LISTED_UNLESS_TOLD
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : Infinity
  return limit <= LISTED_AT_MOST ? limit : undefined
}

function describeRule({ policy, hosts, match, except, allowList }: Rule): object {
  const { name, partition, quota, windowMs, ...rest } = policy
  return {
    name,
    match: match.map(describePattern),
    except: except.map(describePattern),
    ...(hosts && { hosts }),
    ...(allowList && { allowList: allowList.map(describeEntry) }),
    key: partition.map((part) => (part.kind === 'first' ? { first: part.of.map(partName) } : partName(part))),
    requests: quota,
    windowSeconds: windowMs / 1000,
    ...rest,
  }
}

function describeEntry(entry: ListEntry): object {
  return entry.kind === 'ip' ? { ip: entry.ranges } : { header: { [entry.name]: `sha256:${entry.sha256}` } }
}

function describePattern({ methods, path }: RoutePattern): string {
  return `${methods.join(',') || '*'} ${path}`
}

/** Values that are unknown, because Redis is unavailable and the rule is not counted locally, are null. */
function describeState({ policy, source, used, resetMs }: CounterState): object {
  return {
    policy: policy.name,
    limit: policy.quota,
    windowSeconds: policy.windowMs / 1000,
    mode: policy.mode,
    used: used ?? null,
    remaining: used === undefined ? null : remainingOf(policy, used),
    exceeded: used === undefined ? null : used >= policy.quota,
    resetSeconds: resetMs === undefined ? null : toSeconds(resetMs),
    source,
  }
}

function remainingOf({ quota }: Policy, used: number): number {
  return Math.max(0, quota - used)
}

/** To the millisecond. */
function toSeconds(durationMs: number): number {
  return Math.ceil(durationMs) / 1000
}
