import { compileAccountOverrides } from '../../limits/clients/lists/account-overrides.ts'
import { ErrorReply, errors } from '../../../shared/error-replies.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'
import { compileClientLists } from '../../limits/clients/lists/client-lists.ts'
import { sumThrottled, type ThrottledClient } from '../../limits/clients/throttled-clients.ts'
import type { Charge } from '../../limits/limiter.ts'
import { writePattern, type ListEntry, type Policy, type Rule } from '../../policy.ts'
import { partName } from '../../policy/partition.ts'
import { writeCondition } from '../../limits/conditions/written-conditions.ts'
import { planSource } from '../../policy/plans.ts'
import { toSeconds } from './api-values.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { chargesOfClient, describeKey, requestOfClient } from './client-name.ts'
import type { ClientOperations } from '../client-operations.ts'
import { describeState } from './client-state.ts'
import { policyOf } from './entry-request.ts'
import { withBody, withQuery, type Asked } from './read-body.ts'
import { describeReplicas } from '../replicas/report.ts'

export type ClientRoutesOptions = {
  readonly limitsEnabled: boolean
  /** The current rules; empty if rate limiting is disabled. */
  readonly rules: readonly Rule[]
  /** How clients are counted by their addresses. */
  readonly addresses: AddressReader
  readonly clients: ClientOperations
}

/**
 * The API for limits and clients. docs/operations.md describes the formats. A client is named in the body, never in the path or the query,
 * because these end up in logs and histories, and a client's name may be a secret.
 */
export function createClientRoutes(options: ClientRoutesOptions): ApiRoutes {
  const api = new ClientApi(options)
  return new Map<ApiPath, ApiRoute>([
    ['/api/limits', { GET: () => api.describeLimits() }],
    ['/api/clients/inspect', { POST: withBody('question', (asked) => api.inspect(asked)) }],
    ['/api/clients/reset', { POST: withBody('question', (asked) => api.reset(asked)) }],
    ['/api/clients/limited', { GET: withQuery('limitedQuery', (asked) => api.listLimited(asked)) }],
    ['/api/replicas', { GET: () => api.listReplicas() }],
  ])
}

class ClientApi {
  readonly #options: ClientRoutesOptions
  readonly #policies: readonly Policy[]
  /** Made on the first request: describing ten thousand rules takes time, which would delay requests when a new table takes effect. */
  #limits: object | undefined

  constructor(options: ClientRoutesOptions) {
    this.#options = options
    this.#policies = options.rules.map(({ policy }) => policy)
  }

  describeLimits(): object {
    const { limitsEnabled, rules } = this.#options
    return (this.#limits ??= { limitsEnabled, limits: rules.map(describeRule) })
  }

  async inspect(about: Asked<'question'>): Promise<object> {
    const charges = this.#readCharges(about)
    if (charges instanceof ErrorReply) return charges
    const states = await this.#options.clients.inspect(charges)
    return { states: states.map((state, at) => describeState(state, charges[at]?.partitionKey)) }
  }

  async reset(about: Asked<'question'>): Promise<object> {
    const { clients } = this.#options
    const charges = this.#readCharges(about)
    if (charges instanceof ErrorReply) return charges
    const before = await clients.inspect(charges)
    const outcome = await clients.reset(charges)
    if (outcome === 'unavailable') return errors.storeAway
    if (outcome === 'uncertain') return errors.resetUncertain
    const counted = before.filter(({ used }) => used !== 0)
    return { reset: rulesOf(charges), counted: rulesOf(counted) }
  }

  async listLimited(asked: Asked<'limitedQuery'>): Promise<object> {
    const policy = policyOf(asked, this.#policies)
    if (policy instanceof ErrorReply) return policy
    const { scope, limited } = await listEverywhere(this.#options.clients, policy?.name, asked.limit)
    return { scope, clients: limited.map(describeLimited) }
  }

  async listReplicas(): Promise<object> {
    const replicas = await this.#options.clients.readReplicas()
    return { scope: replicas ? 'all' : 'replica', replicas: replicas ? describeReplicas(replicas) : [] }
  }

  #readCharges(about: Asked<'question'>): readonly Charge[] | ErrorReply {
    const { rules, addresses } = this.#options
    const charges = chargesOfClient(about, this.#policies, addresses)
    if (charges instanceof ErrorReply) return charges
    const policy = this.#policies.find(({ name }) => name === about.policy)
    const charged = new Set(charges.map((charge) => charge.policy))
    const request = requestOfClient(about.client, policy, addresses)
    return withFileOverrides(
      charges,
      rules.filter((rule) => charged.has(rule.policy)),
      request,
    )
  }
}

/** Without duplicates. A client whose value has several readings has one counter per reading under a rule. */
function rulesOf(charges: readonly Pick<Charge, 'policy'>[]): readonly string[] {
  return [...new Set(charges.map(({ policy }) => policy.name))]
}

/** Applies the overrides of the table that name the client to its charges. */
function withFileOverrides(
  charges: readonly Charge[],
  rules: readonly Rule[],
  { client, rawHeaders }: ReturnType<typeof requestOfClient>,
): readonly Charge[] {
  const withOverrides = rules
    .filter(({ overrides = [] }) => overrides.length > 0)
    // Also report counters of exempt clients.
    .map((rule) => ({ ...rule, allowList: [] }))
  if (withOverrides.length === 0) return charges
  const lists = compileClientLists({ allowList: [], denyList: [], rules: withOverrides })
  const policies = lists.applying(
    charges.map(({ policy }) => policy),
    client,
    { rawHeaders },
  )
  const named = charges.map((charge, at) => ({ ...charge, policy: policies[at] ?? charge.policy }))
  return compileAccountOverrides(withOverrides)?.apply(named) ?? named
}

/** Lists the limited clients that this gateway knows, and those that other replicas report. */
async function listEverywhere(
  clients: ClientOperations,
  policyName: string | undefined,
  limit: number,
): Promise<{ scope: 'all' | 'replica'; limited: readonly ThrottledClient[] }> {
  // Read one after the other, so that the local state is no older than that of the other processes.
  const replicas = await clients.readReplicas()
  const own = await clients.listLimited(policyName, limit)
  if (!replicas) return { scope: 'replica', limited: own }
  const others = replicas.reports
    .filter(({ gateway }) => gateway !== replicas.own)
    .flatMap(({ limited }) => limited)
    .filter(({ policy }) => policyName === undefined || policy === policyName)
  return { scope: 'all', limited: sumThrottled([...others, ...own], limit) }
}

function describeLimited({
  policy,
  partitionKey,
  label,
  refusals,
  resetMs,
  isShadow,
}: ThrottledClient): object {
  return {
    policy,
    client: describeKey(partitionKey),
    ...(label !== undefined && { label }),
    mode: isShadow ? 'shadow' : 'enforce',
    refusals,
    resetSeconds: toSeconds(resetMs),
  }
}

function describeRule({ policy, hosts, match, except, when, unless, allowList }: Rule): object {
  const { name, partition, quota, windowMs, plans, ...rest } = policy
  return {
    name,
    match: match.map(writePattern),
    except: except.map(writePattern),
    ...(hosts && { hosts }),
    ...(when && { when: when.map(writeCondition) }),
    ...(unless && { unless: unless.map(writeCondition) }),
    ...(allowList && { allowList: allowList.map(describeEntry) }),
    key: partition.map((part) => (part.kind === 'first' ? { first: part.of.map(partName) } : partName(part))),
    requests: quota,
    ...(plans && { plans: plans.quotas, plan: planSource(plans) }),
    windowSeconds: windowMs / 1000,
    ...rest,
  }
}

function describeEntry(entry: ListEntry): object {
  if (entry.kind === 'header') return { header: { [entry.name]: `sha256:${entry.sha256}` } }
  return { ip: [...entry.ranges, ...(entry.files ?? []).map(({ file }) => ({ file }))] }
}
