import { CommandError, formatTable, print, printJson, status as exit } from '../output.ts'
import { askSuccessfully, recordsIn, type AdminOptions } from './admin-client.ts'
import { readClient, writeClient } from './client-argument.ts'

export type PlanOptions = AdminOptions & {
  readonly rule?: string
  readonly remove?: true
}
export type PlansOptions = AdminOptions & { readonly limit?: string }

/**
 * @param args the client, optionally followed by the name of a plan. The name has no `=`, unlike each part of such a client
 * @returns the exit status: 1 if there is no plan to show or to remove
 */
export async function plan(args: readonly string[], options: PlanOptions): Promise<number> {
  const { rule, remove } = options
  const last = args.at(-1)
  const name = args.length > 1 && last?.includes('=') === false ? last : undefined
  const client = name === undefined ? args : args.slice(0, -1)
  if (name !== undefined && remove)
    throw new CommandError('plan needs the name of a plan or --remove, not both', exit.usage)
  const body = await askSuccessfully(options, '/api/clients/plan', 'clients', {
    client: await readClient(client),
    ...(rule !== undefined && { policy: rule }),
    ...(name !== undefined && { plan: name }),
    ...(remove && { plan: null }),
  })
  const clients = recordsIn(body, 'clients')
  if (options.json) printJson(body)
  else
    for (const { client, policies, plan, key } of clients) {
      const rules = Array.isArray(policies) ? policies.join(', ') : ''
      const where = typeof key === 'string' ? `, in ${key}` : ''
      print(
        `${writeClient(client)}: ${typeof plan === 'string' ? `plan ${plan}` : 'no plan'} (${rules})${where}`,
      )
    }
  const isChanged = body['changed'] === true
  if (remove) return isChanged ? exit.yes : exit.no
  return clients.some(({ plan }) => typeof plan === 'string') ? exit.yes : exit.no
}

/** Prints clients with a plan, and whether there are more. @returns the exit status */
export async function listPlans(options: PlansOptions): Promise<number> {
  const { limit } = options
  const query = new URLSearchParams(limit === undefined ? {} : { limit })
  const body = await askSuccessfully(options, `/api/plans?${query.toString()}`, 'plans')
  const plans = recordsIn(body, 'plans')
  if (options.json) printJson(body)
  else {
    if (plans.length === 0) print('no client with a plan was found')
    else
      print(
        formatTable(
          ['client', 'key', 'plan'],
          plans.map(({ client, keyedBy, plan }) => [writeClient(client), String(keyedBy), String(plan)]),
        ),
      )
    if (body['complete'] === false) print('there are more: --limit shows up to 10,000')
  }
  return exit.yes
}
