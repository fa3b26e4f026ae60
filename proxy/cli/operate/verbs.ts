import {
  formatCount,
  formatDuration,
  formatTable,
  print,
  printError,
  printJson,
  status as exit,
} from '../output.ts'
import {
  askAdmin,
  askSuccessfully,
  isRecord,
  recordsIn,
  type AdminOptions,
  type Answer,
} from './admin-client.ts'
import { readClient, writeClient } from './client-argument.ts'

export type ClientOptions = AdminOptions & { readonly rule?: string }
export type LimitedOptions = ClientOptions & { readonly limit?: string }

/** @returns the exit status: 1 if the gateway accepts no traffic */
export async function showStatus(options: AdminOptions): Promise<number> {
  const [live, ready] = [await askAdmin(options, '/livez'), await askAdmin(options, '/readyz')]
  const about = await askSuccessfully(options, '/api/status', 'tableHash')
  const isUp = live.status === 200 && ready.status === 200
  if (options.json) {
    printJson({ alive: live.status === 200, ready: ready.status === 200, ...about })
    return isUp ? exit.yes : exit.no
  }
  const { status, store, upstream, version, uptimeSeconds, limitsEnabled, rules, workers } = about
  const rows: [string, unknown][] = [
    ['alive', live.status === 200 ? 'yes' : `no (${live.status})`],
    ['status', status],
    ['store', store],
    ...nodeRows(about),
    ['backend', upstream],
    ...serverRows(about),
    ['rules', limitsEnabled === false ? 'rate limiting is off' : rules],
    ['table', tableText(about)],
    ['workers', workers],
    ['version', version],
    ['up', formatDuration(uptimeSeconds)],
  ]
  print(rows.map(([name, value]) => `${name.padEnd(8)} ${String(value)}`).join('\n'))
  return isUp ? exit.yes : exit.no
}

function tableText(about: Answer): string {
  const { tableHash, lastReloadSuccessful } = about
  return lastReloadSuccessful === false
    ? `${text(tableHash)}: the last reload was refused, and sluice reload says why`
    : text(tableHash)
}

/** Returns rows for the nodes of a Redis cluster that do not answer. */
function nodeRows(about: Answer): [string, unknown][] {
  const { unavailableStoreNodes: nodes } = about
  return Array.isArray(nodes)
    ? nodes.map((node): [string, unknown] => ['', `${text(node)}: unavailable`])
    : []
}

/** Returns rows for the number of servers in use, and for each server out of use. */
function serverRows(about: Answer): [string, unknown][] {
  const { servers } = about
  if (!isRecord(servers)) return []
  const [used, ...others] = [servers['available'], servers['ejected'], servers['unhealthy']].map(Number)
  const out = recordsIn(about, 'listedServers').filter(({ state }) => state !== 'available')
  return [
    ['servers', `${used} of ${others.reduce((sum, each) => sum + each, used ?? 0)} used`],
    ...out.map(({ upstream, url, address, state }): [string, unknown] => [
      '',
      `${text(upstream)} ${text(url)}${address === undefined ? '' : ` (${text(address)})`}: ${text(state)}`,
    ]),
  ]
}

/** Prints the used quota of a client under each rule that counts it. */
export async function showClient(client: readonly string[], options: ClientOptions): Promise<number> {
  const body = await askSuccessfully(
    options,
    '/api/clients/inspect',
    'states',
    await questionOf(client, options),
  )
  if (options.json) printJson(body)
  else {
    const rows = recordsIn(body, 'states').map((state) => {
      const { policy, used, limit, remaining, resetSeconds, source } = state
      return [
        text(policy),
        text(used),
        text(limit),
        text(remaining),
        formatDuration(resetSeconds),
        stateText(state),
        text(source),
      ]
    })
    print(formatTable(['rule', '>used', '>limit', '>left', '>resets in', 'state', 'source'], rows))
  }
  return exit.yes
}

function stateText({
  bannedSeconds,
  overrideSeconds,
  plan,
  exceeded,
  mode,
  source,
  onStoreError,
}: Readonly<Record<string, unknown>>): string {
  if (typeof bannedSeconds === 'number') return `banned for ${formatDuration(bannedSeconds)}`
  if (source === 'none')
    return onStoreError === 'closed' ? 'refused: Redis is unavailable' : 'not counted: Redis is unavailable'
  const where = exceeded !== true ? 'within' : mode === 'shadow' ? 'over limit (shadow)' : 'over limit'
  if (typeof overrideSeconds === 'number') return `${where}, own limit for ${formatDuration(overrideSeconds)}`
  return typeof plan === 'string' ? `${where}, plan ${plan}` : where
}

/** Warns if the client is banned, because it is still refused after a reset. */
async function warnOfBan(question: object, options: ClientOptions): Promise<void> {
  const body = await askSuccessfully(options, '/api/clients/inspect', 'states', question)
  const banned = recordsIn(body, 'states').find(({ bannedSeconds }) => typeof bannedSeconds === 'number')
  if (!banned) return
  printError(`still banned for ${formatDuration(banned['bannedSeconds'])}: sluice unban lifts that`)
}

/** @returns the exit status: 1 if nothing was counted for the client, which may be a different client than intended */
export async function resetClient(client: readonly string[], options: ClientOptions): Promise<number> {
  // Made once, because the client may be read from standard input.
  const question = await questionOf(client, options)
  const body = await askSuccessfully(options, '/api/clients/reset', 'reset', question)
  const namesIn = (field: string): string[] => {
    const names = body[field]
    return Array.isArray(names) ? names.map(text) : []
  }
  const reset = namesIn('reset')
  // An older gateway does not report this.
  const isKnown = !('counted' in body) || namesIn('counted').length > 0
  if (options.json) printJson(body)
  else {
    if (isKnown) print(`reset: ${reset.join(', ')}`)
    else print(`nothing to reset: the client has used up nothing of ${reset.join(', ')}`)
    await warnOfBan(question, options)
  }
  return isKnown ? exit.yes : exit.no
}

/** Prints the clients that are over a limit. @returns the exit status */
export async function listLimited(options: LimitedOptions): Promise<number> {
  const query = new URLSearchParams({
    ...(options.rule !== undefined && { policy: options.rule }),
    ...(options.limit !== undefined && { limit: options.limit }),
  })
  const body = await askSuccessfully(options, `/api/clients/limited?${query.toString()}`, 'clients')
  const clients = recordsIn(body, 'clients')
  if (options.json) printJson(body)
  else if (clients.length === 0) print('no client is over a limit')
  else {
    const hasLabels = clients.some(({ label }) => typeof label === 'string')
    const rows = clients.map(({ policy, client, mode, refusals, resetSeconds, label }) => [
      mode === 'shadow' ? `${text(policy)} (shadow)` : text(policy),
      writeClient(client),
      formatCount(Number(refusals)),
      formatDuration(resetSeconds),
      ...(hasLabels ? [typeof label === 'string' ? label : ''] : []),
    ])
    print(formatTable(['rule', 'client', '>refused', '>resets in', ...(hasLabels ? ['label'] : [])], rows))
  }
  return exit.yes
}

async function questionOf(client: readonly string[], { rule }: ClientOptions): Promise<object> {
  return { ...(rule !== undefined && { policy: rule }), client: await readClient(client) }
}

/** Formats a value that may be unknown. */
function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?'
}
