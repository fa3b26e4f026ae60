import { byRefusals, type ThrottledClient } from '../decide/throttled-clients.ts'
import type { CounterState, ResetOutcome } from '../limiter/counter-admin.ts'
import type { Charge } from '../limiter/limiter.ts'
import type { Policy } from '../policy.ts'
import type { ClientOperations } from './client-operations.ts'

/** A question about clients as it goes from the primary process to a worker. Policies go by name. */
export type ClientsQuestion =
  | {
      readonly of: 'inspect' | 'reset'
      readonly charges: readonly (readonly [policy: string, key: string])[]
    }
  | { readonly of: 'list'; readonly policy: string | undefined; readonly limit: number }

export type ClientsAnswer =
  | { readonly of: 'inspect'; readonly states: readonly Omit<CounterState, 'policy'>[] }
  | { readonly of: 'reset'; readonly outcome: ResetOutcome }
  | { readonly of: 'list'; readonly clients: readonly ThrottledClient[] }

/** In a worker: what it answers with. */
export async function answerClients(
  question: ClientsQuestion,
  operations: ClientOperations,
  policies: readonly Policy[],
): Promise<ClientsAnswer> {
  if (question.of === 'list')
    return { of: 'list', clients: await operations.listLimited(question.policy, question.limit) }
  const byName = new Map(policies.map((policy) => [policy.name, policy]))
  const charges = question.charges.flatMap(([name, partitionKey]): Charge[] => {
    const policy = byName.get(name)
    return policy ? [{ policy, partitionKey }] : []
  })
  return question.of === 'inspect'
    ? { of: 'inspect', states: await operations.inspect(charges) }
    : { of: 'reset', outcome: await operations.reset(charges) }
}

/** Asks all workers at once, or one after another until one has answered. What they answer is in no order. */
export type AskWorkers = (question: ClientsQuestion, whom: 'all' | 'one') => Promise<ClientsAnswer[]>

/**
 * In the primary process, where the workers count in Redis: a client's state is what Redis told one of them; without
 * Redis it is that of the worker on which the client has used up most, as each counts for itself then.
 */
export function createWorkersOperations(ask: AskWorkers): ClientOperations {
  return {
    async inspect(charges) {
      const answers = await ask({ of: 'inspect', charges: charges.map(nameCharge) }, 'all')
      const perWorker = answers.flatMap((answer) => (answer.of === 'inspect' ? [answer.states] : []))
      return charges.map(({ policy }, index) => {
        const states = perWorker.flatMap((all) => all[index] ?? []).toSorted(byWeight)
        return { source: 'none', used: undefined, resetMs: undefined, ...states[0], policy }
      })
    },
    async reset(charges) {
      const [answer] = await ask({ of: 'reset', charges: charges.map(nameCharge) }, 'one')
      return answer?.of === 'reset' ? answer.outcome : 'uncertain'
    },
    listLimited: (policyName, limit) => listOfWorkers(ask, policyName, limit),
  }
}

/** The workers' lists as one: a client's refusals are the sum of theirs. */
async function listOfWorkers(
  ask: AskWorkers,
  policyName: string | undefined,
  limit: number,
): Promise<ThrottledClient[]> {
  // Approximate top N: each worker reports its 2 N largest.
  const answers = await ask({ of: 'list', policy: policyName, limit: 2 * limit }, 'all')
  const clients = answers.flatMap((answer) => (answer.of === 'list' ? answer.clients : []))
  const sums = new Map<string, ThrottledClient>()
  for (const client of clients) {
    const name = `${client.policy} ${client.partitionKey}`
    const sum = sums.get(name)
    const refusals = client.refusals + (sum?.refusals ?? 0)
    sums.set(name, { ...client, refusals, resetMs: Math.max(client.resetMs, sum?.resetMs ?? 0) })
  }
  return [...sums.values()].sort(byRefusals).slice(0, limit)
}

function nameCharge({ policy, partitionKey }: Charge): readonly [string, string] {
  return [policy.name, partitionKey]
}

const weights = { store: 2, local: 1, none: 0 } as const

function byWeight(a: Omit<CounterState, 'policy'>, b: Omit<CounterState, 'policy'>): number {
  return weights[b.source] - weights[a.source] || (b.used ?? 0) - (a.used ?? 0)
}
