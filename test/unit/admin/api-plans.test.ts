import { expect, test } from 'vitest'
import { createPlanRoutes } from '../../../proxy/admin/api/api-plans.ts'
import type { PlanStore } from '../../../proxy/limits/plans/plan-store.ts'
import { createMemoryPlans } from '../../../proxy/limits/plans/stored-plans.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { errors } from '../../../shared/error-replies.ts'
import { makePolicy } from '../../support/limiter/charges.ts'

const plans = { quotas: { pro: 50 } }
const policies = [
  makePolicy('signed', 1, 60_000, { plans, partition: [{ kind: 'jwt', name: 'sub' }] }),
  makePolicy('claimed', 1, 60_000, { plans, partition: [{ kind: 'header', name: 'x-user' }] }),
]

test('a plan is set for the value of one key; a hash that may belong to several keys needs the name of a rule', async () => {
  const addresses = createAddressReader([])
  const routes = createPlanRoutes({ policies, addresses, plans: createMemoryPlans() })
  const ask = (body: object): unknown => routes.get('/api/clients/plan')?.POST?.(new URLSearchParams(), body)
  const list = (): unknown => routes.get('/api/plans')?.GET?.(new URLSearchParams(), undefined)

  const set = (await ask({ client: { 'jwt:sub': '4711' }, plan: 'pro' })) as { clients: { client: object }[] }
  const [one] = set.clients
  expect(set).toMatchObject({
    changed: true,
    clients: [{ keyedBy: 'jwt:sub', policies: ['signed'], plan: 'pro' }],
  })
  expect(await ask({ client: { 'header:x-user': '4711' } })).toMatchObject({
    clients: [{ client: one?.client, keyedBy: 'header:x-user', policies: ['claimed'], plan: null }],
  })

  const client = one?.client
  expect(await ask({ client, plan: 'pro' })).toBe(errors.planKeyUnclear)
  expect(await ask({ client, policy: 'claimed', plan: 'pro' })).toMatchObject({
    clients: [{ keyedBy: 'header:x-user', plan: 'pro' }],
  })
  expect(await ask({ client, policy: 'signed', plan: null })).toMatchObject({ changed: true })
  expect(await list()).toEqual({
    complete: true,
    plans: [{ client, keyedBy: 'header:x-user', policies: ['claimed'], plan: 'pro' }],
  })
})

test('without Redis a question is told that nothing can be read, a change that nothing was changed, half a change that it is unsure', async () => {
  let answers = 0
  const away: PlanStore = {
    get: () => Promise.resolve('unavailable'),
    list: () => Promise.resolve('unavailable'),
    set: () => Promise.resolve(answers-- > 0 ? 'done' : 'unavailable'),
  }
  const routes = createPlanRoutes({ policies, addresses: createAddressReader([]), plans: away })
  const ask = (body: object): unknown => routes.get('/api/clients/plan')?.POST?.(new URLSearchParams(), body)
  const client = { 'header:x-user': '4711' }
  expect(await routes.get('/api/plans')?.GET?.(new URLSearchParams(), undefined)).toBe(errors.storeAwayUnread)
  expect(await ask({ client })).toBe(errors.storeAwayUnread)
  for (const plan of ['pro', null]) expect(await ask({ client, plan })).toBe(errors.storeAwayUnchanged)

  // A hash may be a client under two keys, which may be on two nodes of a cluster.
  answers = 1
  expect(await ask({ client: { id: 'h:Zm9vYmFyYmF6cXV4cXV1eA' }, plan: null })).toBe(errors.changeUncertain)
})
