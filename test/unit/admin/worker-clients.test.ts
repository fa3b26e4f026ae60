import { expect, test } from 'vitest'
import type { ClientOperations } from '../../../proxy/admin/client-operations.ts'
import {
  answerClients,
  createWorkersOperations,
  type ClientsAnswer,
} from '../../../proxy/admin/worker-clients.ts'
import { withPlan } from '../../../proxy/limits/algorithms/registry.ts'
import { toState } from '../../../proxy/limits/store/counter-admin.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { makePolicy } from '../../support/limiter/charges.ts'

const pro = makePolicy('planned', 10, 60_000, { plans: { claim: 'plan', quotas: { pro: 500 } } })
const usual = makePolicy('usual', 20, 60_000)
const added = makePolicy('added', 30, 60_000)

/** Asks a worker whose table has these policies and in which a client has used a tenth of each quota. */
async function inspect(policies: readonly Policy[], asked: readonly Policy[]) {
  const operations = {
    inspect: (charges) =>
      Promise.resolve(
        charges.map(({ policy }) => ({
          ...toState(policy, 'store', { used: policy.quota / 10, resetMs: 1_000 }),
          quota: policy.quota,
        })),
      ),
  } satisfies Partial<ClientOperations> as unknown as ClientOperations
  const rules = policies.map((policy) => ({ policy, match: [], except: [] }))
  const workers = createWorkersOperations(async (question) => {
    const answer = await answerClients(structuredClone(question), operations, rules)
    return [JSON.parse(JSON.stringify(answer)) as ClientsAnswer]
  })
  const states = await workers.inspect(asked.map((policy) => ({ policy, partitionKey: 'ip:192.0.2.1' })))
  return states.map(({ policy, quota, used }) => ({ name: policy.name, quota, used }))
}

test('a worker tells the state of a client under its plan', async () => {
  expect(await inspect([pro], [withPlan(pro, 'pro'), pro])).toEqual([
    { name: 'planned', quota: 500, used: 50 },
    { name: 'planned', quota: 10, used: 1 },
  ])
})

test('a rule that a worker does not have yet takes the state of no other', async () => {
  expect(await inspect([pro, usual], [added, usual])).toEqual([
    { name: 'added', quota: 30, used: undefined },
    { name: 'usual', quota: 20, used: 2 },
  ])
})
