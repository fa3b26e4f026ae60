import { ErrorReply, errors } from '../../../shared/error-replies.ts'
import type { Charge } from '../../limits/limiter.ts'
import type { PlanOwner, PlanStore } from '../../limits/plans/plan-store.ts'
import type { Policy } from '../../policy.ts'
import { planKeyName } from '../../limits/plans/plan-key-name.ts'
import { hasPlan, readsStoredPlan } from '../../policy/plans.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { chargesOfClient, describeKey } from './client-name.ts'
import { policyOf, type About } from './entry-request.ts'
import { withBody, withQuery, type Asked } from './read-body.ts'

export type PlanRoutesOptions = {
  /** The policies of the current rules. */
  readonly policies: readonly Policy[]
  /** How clients are counted by their addresses. */
  readonly addresses: AddressReader
  readonly plans: PlanStore
}

/**
 * The API for plans that were set for clients. docs/operations.md describes the formats. A plan belongs to a client under all rules with
 * `plan: store` that count by the same key. The same value of a different key is a different client.
 */
export function createPlanRoutes(options: PlanRoutesOptions): ApiRoutes {
  const api = new PlanApi(options)
  return new Map<ApiPath, ApiRoute>([
    ['/api/clients/plan', { POST: withBody('planned', (asked) => api.plan(asked)) }],
    ['/api/plans', { GET: withQuery('entriesQuery', (asked) => api.list(asked)) }],
  ])
}

/** A client under a key, and the rules that count by this key. */
type Owned = { readonly owner: PlanOwner; readonly policies: readonly string[] }

class PlanApi {
  readonly #options: PlanRoutesOptions
  /** The policies with `plan: store`. */
  readonly #reading: readonly Policy[]

  constructor(options: PlanRoutesOptions) {
    this.#options = options
    this.#reading = options.policies.filter(readsStoredPlan)
  }

  async list({ limit }: Asked<'entriesQuery'>): Promise<object> {
    const list = await this.#options.plans.list(limit)
    if (list === 'unavailable') return errors.storeAwayUnread
    return {
      complete: list.isAll,
      plans: list.plans.map(({ partitionKey, keyName, plan }) => ({
        client: describeKey(partitionKey),
        keyedBy: keyName,
        policies: this.#reading.filter((each) => planKeyName(each) === keyName).map((each) => each.name),
        plan,
      })),
    }
  }

  /** Sets, removes or returns the plan of a client. */
  async plan({ client, policy, plan: name }: Asked<'planned'>): Promise<object> {
    const charges = this.#readCharges({ client, policy })
    if (charges instanceof ErrorReply) return charges
    if (typeof name === 'string' && !charges.some((charge) => hasPlan(charge.policy, name)))
      return errors.noSuchPlan
    const byKey = Map.groupBy(charges, ({ policy: each }) => planKeyName(each))
    // A hash identifies the client, but not the key that it is counted by.
    if (typeof name === 'string' && isId(client) && byKey.size > 1) return errors.planKeyUnclear
    const owned = [...byKey].flatMap(([keyName, part]) => ownersOf(keyName, part))
    const changed = name === undefined ? false : await this.#set(owned, name ?? undefined)
    if (typeof changed !== 'boolean') return changed
    const clients = await this.#describe(owned)
    if (clients) return { clients, changed }
    return name === undefined ? errors.storeAwayUnread : errors.changeUncertain
  }

  #readCharges(about: About): readonly Charge[] | ErrorReply {
    const { policies, addresses } = this.#options
    const policy = policyOf(about, policies)
    if (policy instanceof ErrorReply) return policy
    if (this.#reading.length === 0 || (policy && !readsStoredPlan(policy))) return errors.noStoredPlans
    return chargesOfClient(about, this.#reading, addresses)
  }

  /** Returns whether a plan has changed. @param plan undefined removes the plan */
  async #set(owned: readonly Owned[], plan: string | undefined): Promise<boolean | ErrorReply> {
    let changed = false
    for (const { owner } of owned) {
      const outcome = await this.#options.plans.set(owner, plan)
      if (outcome === 'full') return errors.tooManyPlans
      if (outcome === 'unavailable') return changed ? errors.changeUncertain : errors.storeAwayUnchanged
      if (outcome === 'uncertain') return errors.changeUncertain
      changed ||= outcome === 'done'
    }
    return changed
  }

  /** Resolves to undefined if the store is unavailable. */
  async #describe(owned: readonly Owned[]): Promise<readonly object[] | undefined> {
    const clients: object[] = []
    for (const { owner, policies } of owned) {
      const stored = await this.#options.plans.get(owner)
      if (stored === 'unavailable') return undefined
      clients.push({
        client: describeKey(owner.partitionKey),
        keyedBy: owner.keyName,
        policies,
        plan: stored.plan ?? null,
        key: stored.key ?? null,
      })
    }
    return clients
  }
}

function ownersOf(keyName: string, charges: readonly Charge[]): Owned[] {
  return [...Map.groupBy(charges, ({ partitionKey }) => partitionKey)].map(([partitionKey, its]) => ({
    owner: { partitionKey, keyName },
    policies: its.map(({ policy }) => policy.name),
  }))
}

function isId(client: unknown): boolean {
  return typeof client === 'object' && client !== null && 'id' in client
}
