import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import type { Charge } from '../../limits/limiter.ts'
import type { PlanStore } from '../../limits/plans/plan-store.ts'
import type { Policy } from '../../policy.ts'
import { planKeyName } from '../../policy/plan-key-name.ts'
import { readsStoredPlan } from '../../policy/plans.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'
import type { ApiPath, ApiRoute, ApiRoutes } from './api.ts'
import { entriesQuery, planned } from './bodies.ts'
import { chargesOfClient, describeKey } from './client-name.ts'
import { readBody, readQuery } from './read-body.ts'

/**
 * The API for plans that were set for clients; the formats are in docs/operations.md. A plan is that of a client, under all rules with
 * `plan: store` that count by the same key: the same value of another key is another client.
 *
 * @param options.policies the policies of the rules in force
 * @param options.addresses how clients are counted by their addresses
 */
export function createPlanRoutes(options: {
  readonly policies: readonly Policy[]
  readonly addresses: AddressReader
  readonly plans: PlanStore
}): ApiRoutes {
  const { policies, addresses, plans } = options
  const reading = policies.filter(readsStoredPlan)

  function readCharges(client: unknown, name: string | undefined): readonly Charge[] | ErrorReply {
    const policy = name === undefined ? undefined : policies.find((each) => each.name === name)
    if (name !== undefined && !policy) return errors.noSuchPolicy
    if (reading.length === 0 || (policy && !readsStoredPlan(policy))) return errors.noStoredPlans
    return chargesOfClient(client, policy, reading, addresses)
  }

  async function plan(body: unknown): Promise<unknown> {
    const read = readBody(planned, body)
    if ('error' in read) return read.error
    const { client, policy, plan: name } = read.value
    const charges = readCharges(client, policy)
    if (!isCharges(charges)) return charges
    if (typeof name === 'string' && !charges.some((charge) => hasPlan(charge, name))) return errors.noSuchPlan
    const byKey = Map.groupBy(charges, ({ policy }) => planKeyName(policy))
    // A hash says for whom, and not by which key.
    if (typeof name === 'string' && isId(client) && byKey.size > 1) return errors.planKeyUnclear
    const owned = [...byKey].flatMap(([keyName, part]) =>
      [...Map.groupBy(part, ({ partitionKey }) => partitionKey)].map(([partitionKey, its]) => ({
        owner: { partitionKey, keyName },
        policies: its.map((charge) => charge.policy.name),
      })),
    )
    let changed = false
    if (name !== undefined) {
      for (const { owner } of owned) {
        const outcome = await plans.set(owner, name ?? undefined)
        if (outcome === 'full') return errors.tooManyPlans
        if (outcome === 'unavailable') return errors.storeAwayUnchanged
        if (outcome === 'uncertain') return errors.changeUncertain
        changed ||= outcome === 'done'
      }
    }
    const clients: object[] = []
    for (const { owner, policies: counting } of owned) {
      const stored = await plans.get(owner)
      if (stored === 'unavailable')
        return name === undefined ? errors.storeAwayUnchanged : errors.changeUncertain
      clients.push({
        client: describeKey(owner.partitionKey),
        keyedBy: owner.keyName,
        policies: counting,
        plan: stored.plan ?? null,
        key: stored.key ?? null,
      })
    }
    return { clients, changed }
  }

  return new Map<ApiPath, ApiRoute>([
    ['/api/clients/plan', { POST: (_query, body) => plan(body) }],
    [
      '/api/plans',
      {
        GET: async (query) => {
          const read = readQuery(entriesQuery, query)
          if ('error' in read) return read.error
          const list = await plans.list(read.value.limit)
          if (list === 'unavailable') return errors.storeAwayUnchanged
          return {
            complete: list.isAll,
            plans: list.plans.map(({ partitionKey, keyName, plan }) => ({
              client: describeKey(partitionKey),
              keyedBy: keyName,
              policies: reading.filter((each) => planKeyName(each) === keyName).map((each) => each.name),
              plan,
            })),
          }
        },
      },
    ],
  ])
}

function hasPlan({ policy: { plans } }: Charge, name: string): boolean {
  return plans !== undefined && Object.hasOwn(plans.quotas, name)
}

function isId(client: unknown): boolean {
  return typeof client === 'object' && client !== null && 'id' in client
}

function isCharges(value: readonly Charge[] | ErrorReply): value is readonly Charge[] {
  return Array.isArray(value)
}
