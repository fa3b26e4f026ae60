import type { ClientEntry, EntryId, EntryKind, EntryOf, TimedEntry } from '../limits/clients/client-entry.ts'
import type { EntryOutcome } from '../limits/clients/entry-store.ts'
import { sumThrottled, type ThrottledClient } from '../limits/clients/throttled-clients.ts'
import type { ResetOutcome } from '../limits/store/counter-admin.ts'
import type { Charge } from '../limits/limiter.ts'
import type { PlanOwner, PlanStore } from '../limits/plans/plan-store.ts'
import type { Explanation } from '../limits/explain/explain.ts'
import { withPlan } from '../limits/algorithms/registry.ts'
import { policiesOf, type Rule } from '../policy.ts'
import type { AskedHead, ClientOperations, ClientState } from './client-operations.ts'
import type { Replicas } from './replicas/report.ts'

/** A question about clients from the primary process to a worker. Policies are referred to by name. */
export type ClientsQuestion =
  | {
      readonly of: 'inspect' | 'reset'
      readonly charges: readonly NamedCharge[]
    }
  | { readonly of: 'list'; readonly policy: string | undefined; readonly limit: number }
  | { readonly of: 'replicas' }
  | { readonly of: 'entries'; readonly kind: EntryKind }
  | { readonly of: 'put'; readonly entry: ClientEntry; readonly forMs: number }
  | { readonly of: 'remove'; readonly id: EntryId }
  | { readonly of: 'explain'; readonly asked: AskedHead }
  | { readonly of: 'plan'; readonly owner: PlanOwner }
  | { readonly of: 'set-plan'; readonly owner: PlanOwner; readonly plan: string | undefined }
  | { readonly of: 'plans'; readonly limit: number }

/** `override` and `plan` say which of the rule's overrides and plans the client has. */
type NamedCharge = {
  readonly policy: string
  readonly partitionKey: string
  readonly override?: number
  readonly plan?: string
}

export type ClientsAnswer =
  /** One state per charge; null if the worker does not have the rule. */
  | { readonly of: 'inspect'; readonly states: readonly (Omit<ClientState, 'policy'> | null)[] }
  | { readonly of: 'reset'; readonly outcome: ResetOutcome }
  | { readonly of: 'list'; readonly clients: readonly ThrottledClient[] }
  | { readonly of: 'replicas'; readonly replicas?: Replicas }
  | { readonly of: 'entries'; readonly entries: readonly TimedEntry[] }
  | { readonly of: 'plan'; readonly plan: Awaited<ReturnType<PlanStore['get']>> }
  | { readonly of: 'plans'; readonly plans: Awaited<ReturnType<PlanStore['list']>> }
  | { readonly of: 'put' | 'remove' | 'set-plan'; readonly outcome: EntryOutcome }
  | { readonly of: 'explain'; readonly explanation: Explanation | undefined }

/** Answers questions about clients in a worker. */
export async function answerClients(
  question: ClientsQuestion,
  operations: ClientOperations,
  rules: readonly Rule[],
): Promise<ClientsAnswer> {
  const { of } = question
  const { entries, plans } = operations
  switch (of) {
    case 'inspect': {
      const charges = findCharges(question.charges, rules)
      const known = charges.filter((charge) => charge !== undefined)
      const states = (await operations.inspect(known)).values()
      return { of, states: charges.map((charge) => (charge && states.next().value) ?? null) }
    }
    case 'reset': {
      const charges = findCharges(question.charges, rules)
      return { of, outcome: await operations.reset(charges.filter((charge) => charge !== undefined)) }
    }
    case 'list':
      return { of, clients: await operations.listLimited(question.policy, question.limit) }
    case 'replicas': {
      const replicas = await operations.readReplicas()
      return { of, ...(replicas && { replicas }) }
    }
    case 'entries':
      return { of, entries: await entries.list(question.kind) }
    case 'put':
      return { of, outcome: await entries.put(question.entry, question.forMs) }
    case 'remove':
      return { of, outcome: await entries.remove(question.id) }
    case 'explain':
      return { of, explanation: await operations.explain(question.asked) }
    case 'plan':
      return { of, plan: await plans.get(question.owner) }
    case 'set-plan':
      return { of, outcome: await plans.set(question.owner, question.plan) }
    case 'plans':
      return { of, plans: await plans.list(question.limit) }
  }
}

/** Returns the charge of each name; undefined if this worker does not have the rule. */
function findCharges(named: readonly NamedCharge[], rules: readonly Rule[]): (Charge | undefined)[] {
  const policies = policiesOf(rules)
  return named.map(({ policy: name, partitionKey, override, plan }) => {
    const policy = policies.find((each) => each.name === name && each.override === override)
    return policy && { policy: plan === undefined ? policy : withPlan(policy, plan), partitionKey }
  })
}

/** Asks all workers at once, or one after another until one has answered. Answers are in no order. */
export type AskWorkers = (question: ClientsQuestion, recipients: 'all' | 'one') => Promise<ClientsAnswer[]>

/**
 * Creates the operations in a primary process whose workers count in Redis. A worker reads the state of a client from Redis. If Redis is
 * unavailable, each worker counts by itself, and the state of the worker with the most requests of the client is returned.
 */
export function createWorkersOperations(ask: AskWorkers): ClientOperations {
  /** Resolves to undefined if no worker answers. */
  const askOne = async <Of extends ClientsQuestion['of']>(
    question: ClientsQuestion & { readonly of: Of },
  ): Promise<(ClientsAnswer & { readonly of: Of }) | undefined> => {
    const [answer] = await ask(question, 'one')
    return answer?.of === question.of ? (answer as ClientsAnswer & { readonly of: Of }) : undefined
  }
  return {
    async inspect(charges) {
      const answers = await ask({ of: 'inspect', charges: charges.map(nameCharge) }, 'all')
      const perWorker = answers.flatMap((answer) => (answer.of === 'inspect' ? [answer.states] : []))
      return charges.map(({ policy }, index) => {
        const states = perWorker.flatMap((all) => all[index] ?? []).toSorted(byWeight)
        const { quota } = policy
        return { source: 'none', used: undefined, resetMs: undefined, quota, ...states[0], policy }
      })
    },
    async reset(charges) {
      const answer = await askOne({ of: 'reset', charges: charges.map(nameCharge) })
      return answer?.outcome ?? 'uncertain'
    },
    listLimited: (policyName, limit) => listOfWorkers(ask, policyName, limit),
    readReplicas: async () => (await askOne({ of: 'replicas' }))?.replicas,
    explain: async (asked) => (await askOne({ of: 'explain', asked }))?.explanation,
    plans: {
      get: async (owner) => (await askOne({ of: 'plan', owner }))?.plan ?? 'unavailable',
      set: async (owner, plan) => (await askOne({ of: 'set-plan', owner, plan }))?.outcome ?? 'uncertain',
      list: async (limit) => (await askOne({ of: 'plans', limit }))?.plans ?? 'unavailable',
    },
    entries: {
      async list<Kind extends EntryKind>(kind: Kind) {
        const answer = await askOne({ of: 'entries', kind })
        const isOfKind = (timed: TimedEntry): timed is TimedEntry<EntryOf<Kind>> => timed.entry.kind === kind
        return answer?.entries.filter(isOfKind) ?? []
      },
      put: async (entry, forMs) => (await askOne({ of: 'put', entry, forMs }))?.outcome ?? 'uncertain',
      remove: async (id) => (await askOne({ of: 'remove', id }))?.outcome ?? 'uncertain',
    },
  }
}

/** Merges the lists of all workers. The refusals of a client are the sum over the workers. */
async function listOfWorkers(
  ask: AskWorkers,
  policyName: string | undefined,
  limit: number,
): Promise<ThrottledClient[]> {
  // Approximate top N: each worker reports its 2 N largest.
  const answers = await ask({ of: 'list', policy: policyName, limit: 2 * limit }, 'all')
  const clients = answers.flatMap((answer) => (answer.of === 'list' ? answer.clients : []))
  return sumThrottled(clients, limit)
}

function nameCharge({ policy, partitionKey }: Charge): NamedCharge {
  const { name, override, plan } = policy
  return {
    policy: name,
    partitionKey,
    ...(override !== undefined && { override }),
    ...(plan !== undefined && { plan }),
  }
}

const weights = { store: 2, local: 1, none: 0 } as const

/** Orders states so that a worker that refuses the client comes first. Other workers may not know yet that the client is over the limit. */
function byWeight(a: Omit<ClientState, 'policy'>, b: Omit<ClientState, 'policy'>): number {
  const overLimit = Number((b.used ?? 0) >= b.quota) - Number((a.used ?? 0) >= a.quota)
  return overLimit || weights[b.source] - weights[a.source] || (b.used ?? 0) - (a.used ?? 0)
}
