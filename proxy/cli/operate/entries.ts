import {
  formatCount,
  formatDuration,
  formatTable,
  print,
  printJson,
  status as exit,
  CommandError,
} from '../output.ts'
import { askSuccessfully, recordsIn, type AdminOptions, type Answer } from './admin-client.ts'
import { readClient, writeClient } from './client-argument.ts'

export type BanOptions = AdminOptions & {
  readonly for: string
  readonly rule?: string
  readonly reason?: string
}
export type UnbanOptions = AdminOptions & { readonly rule?: string }
export type OverrideOptions = AdminOptions & {
  readonly rule: string
  readonly requests?: string
  readonly for?: string
  readonly label?: string
  readonly remove?: true
}
export type ListOptions = AdminOptions & { readonly limit?: string }

/** Bans a client, and prints what the gateway has banned. @returns the exit status */
export async function ban(client: readonly string[], options: BanOptions): Promise<number> {
  const { rule, reason } = options
  const body = await askSuccessfully(options, '/api/clients/ban', 'banned', {
    client: await readClient(client),
    for: options.for,
    ...(rule !== undefined && { policy: rule }),
    ...(reason !== undefined && { reason }),
  })
  if (options.json) printJson(body)
  else for (const one of recordsIn(body, 'banned')) print(`banned: ${writeBan(one)} for ${options.for}`)
  return exit.yes
}

/** @returns the exit status: 1 if the client was not banned */
export async function unban(client: readonly string[], options: UnbanOptions): Promise<number> {
  const { rule } = options
  const body = await askSuccessfully(options, '/api/clients/unban', 'unbanned', {
    client: await readClient(client),
    ...(rule !== undefined && { policy: rule }),
  })
  const lifted = recordsIn(body, 'unbanned')
  if (options.json) printJson(body)
  else if (lifted.length === 0) print('the client is not banned')
  else for (const one of lifted) print(`lifted: ${writeBan(one)}`)
  return lifted.length > 0 ? exit.yes : exit.no
}

/** @returns the exit status: 1 if there was nothing to remove */
export async function override(client: readonly string[], options: OverrideOptions): Promise<number> {
  const { rule, requests, label, remove } = options
  const named = { policy: rule, client: await readClient(client) }
  if (remove) {
    const body = await askSuccessfully(options, '/api/clients/override/remove', 'removed', named)
    const isRemoved = body['removed'] === true
    if (options.json) printJson(body)
    else print(isRemoved ? `removed: ${rule}` : `the client has no limit of its own under ${rule}`)
    return isRemoved ? exit.yes : exit.no
  }
  if (requests === undefined || options.for === undefined)
    throw new CommandError('override needs --requests and --for, or --remove', exit.usage)
  // The gateway rejects values that are not numbers, like every other mistake.
  const quota = requests.trim() === '' ? requests : Number(requests)
  const body = await askSuccessfully(options, '/api/clients/override', 'override', {
    ...named,
    requests: quota,
    for: options.for,
    ...(label !== undefined && { label }),
  })
  if (options.json) printJson(body)
  else print(`${rule}: ${quota} requests for ${options.for}`)
  return exit.yes
}

/** Prints the bans, the ones that end last first. @returns the exit status */
export async function listBans(options: ListOptions): Promise<number> {
  const body = await askSuccessfully(options, `/api/bans?${queryOf(options)}`, 'bans')
  const bans = recordsIn(body, 'bans')
  if (options.json) printJson(body)
  else if (bans.length === 0) print('no client is banned')
  else {
    const rows = bans.map(({ client, policy, expiresSeconds, by, times, reason }) => [
      writeClient(client),
      typeof policy === 'string' ? policy : 'all',
      formatDuration(expiresSeconds),
      String(by),
      typeof times === 'number' ? formatCount(times) : '',
      typeof reason === 'string' ? reason : '',
    ])
    print(formatTable(['client', 'rule', '>ends in', 'by', '>in a row', 'reason'], rows))
    printRemaining(body, bans.length)
  }
  return exit.yes
}

/** Prints the limits that were set for clients, the ones that end last first. @returns the exit status */
export async function listOverrides(options: ListOptions): Promise<number> {
  const body = await askSuccessfully(options, `/api/overrides?${queryOf(options)}`, 'overrides')
  const overrides = recordsIn(body, 'overrides')
  if (options.json) printJson(body)
  else if (overrides.length === 0) print('no client has a limit of its own')
  else {
    const rows = overrides.map(({ client, policy, requests, expiresSeconds, label }) => [
      writeClient(client),
      String(policy),
      formatCount(Number(requests)),
      formatDuration(expiresSeconds),
      typeof label === 'string' ? label : '',
    ])
    print(formatTable(['client', 'rule', '>requests', '>ends in', 'label'], rows))
    printRemaining(body, overrides.length)
  }
  return exit.yes
}

function queryOf({ limit }: ListOptions): string {
  return new URLSearchParams(limit === undefined ? {} : { limit }).toString()
}

function printRemaining(body: Answer, shown: number): void {
  const total = Number(body['total'])
  if (total > shown) print(`${formatCount(total - shown)} more: --limit shows up to 10,000`)
}

function writeBan({ client, policy }: Readonly<Record<string, unknown>>): string {
  return `${writeClient(client)} ${typeof policy === 'string' ? `under ${policy}` : 'under all rules'}`
}
