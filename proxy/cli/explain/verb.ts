import { createLog, type Log } from '../../../shared/log.ts'
import { readGeo } from '../../app/addresses/live-geo.ts'
import { explainHead } from '../../app/explain/explain-head.ts'
import { composeNames, lookUpEverywhere } from '../../app/upstreams/names.ts'
import { composeAddresses, composeTrustedProxies } from '../../app/addresses/trusted-proxies.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { readListsOf } from '../settings/read-lists.ts'
import type { Explanation } from '../../limits/explain/explain.ts'
import {
  fitsInLine,
  isHeaderName,
  writeHead,
  type ExplainedRequest,
} from '../../limits/explain/request-text.ts'
import { compileTable } from '../../limits/request-table.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { createTokens } from '../../limits/keys/tokens/tokens.ts'
import { readFileArgument } from '../file-argument.ts'
import { CommandError, printJson, status } from '../output.ts'
import { loadSettings, nameLimits, type ConfigOption } from '../settings/settings.ts'
import { printExplanation } from './print.ts'

export type ExplainOptions = ConfigOption & {
  readonly host?: string
  /** The address of the connection's peer. */
  readonly ip: string
  /** Headers as written: `NAME: VALUE`. */
  readonly header: readonly string[]
  /** The body, or `@` and the name of a file that contains it. */
  readonly data?: string
  /** The address of the running gateway to ask; if undefined, the settings here are used. */
  readonly admin?: string
  readonly json?: true
}

/** Maximum time to resolve the names of trusted proxies, and to load the keys of tokens. */
const LOOKUPS_MS = 2_000

/** @returns the exit status: 1 if the request is answered before it reaches the rules, or if a running gateway refuses it */
export async function explainVerb(method: string, target: string, options: ExplainOptions): Promise<number> {
  const asked = await readAsked(method, target, options)
  if (options.admin !== undefined) {
    if (options.config !== undefined)
      throw new CommandError('--admin asks a running gateway: do not combine it with --config', status.usage)
    const { askToExplain } = await import('./ask-gateway.ts')
    return askToExplain(asked, options.ip, { admin: options.admin, ...(options.json && { json: true }) })
  }
  lookUpEverywhere(composeNames())
  const settings = loadSettings(options)
  const head = writeHead(asked, settings.upstreamUrl.host)
  const explanation = await explainRequest(settings, head, options.ip, asked.body)
  if (options.json) printJson(explanation)
  else printExplanation(explanation, nameLimits(settings))
  return reachesRules(explanation) ? status.yes : status.no
}

function reachesRules({ outcome }: Explanation): boolean {
  return outcome === 'limited' || outcome === 'forwarded'
}

/**
 * Explains a request that arrives on a connection from this address at a gateway with these settings.
 *
 * @param head the request line and the headers, one character per byte
 */
export async function explainRequest(
  settings: GatewaySettings,
  head: string,
  ip: string,
  body?: string,
): Promise<Explanation> {
  const log = createLog('sluice', 'silent')
  const now = (): number => performance.now()
  const names = composeNames()
  const { ranges, hosts } = composeTrustedProxies(settings, { names, log, now })
  await hosts?.ready(LOOKUPS_MS)
  const addresses = composeAddresses(settings, { ranges, hosts })
  const table = compileTable(settings, addresses, readListsOf(settings).lists, await readGeo(settings.geoip))
  const tokens = await composeTokens(settings, table.written, log, now)
  try {
    const explanation = await explainHead({ head, ip, body }, settings, { table, tokens: tokens?.reader })
    if (explanation) return explanation
    throw new CommandError(`--ip needs an IP address, got ${JSON.stringify(ip)}`, status.usage)
  } finally {
    tokens?.close()
    hosts?.close()
  }
}

async function composeTokens(
  { jwt }: GatewaySettings,
  rules: GatewaySettings['rules'],
  log: Log,
  now: () => number,
): ReturnType<typeof createTokens> {
  const ignore = (): void => undefined
  const telemetry = {
    tokenRead: ignore,
    keySetLoaded: ignore,
    observeTable: ignore,
  } as Partial<Telemetry> as Telemetry
  const tokens = await createTokens(jwt, rules, { telemetry, log, now, wallNow: Date.now })
  await tokens?.ready(LOOKUPS_MS)
  return tokens
}

async function readAsked(
  method: string,
  target: string,
  { host, header, data }: ExplainOptions,
): Promise<ExplainedRequest> {
  const headers = header.map((line): readonly [string, string] => {
    const [, name = '', value = ''] = /^([^:]*):[\t ]*(.*)$/s.exec(line) ?? []
    if (!isHeaderName(name)) throw new CommandError('--header needs NAME: VALUE', status.usage)
    return [name, value]
  })
  if (![method, target, host ?? '', ...header].every(fitsInLine))
    throw new CommandError('a request cannot have line ends in it', status.usage)
  return { method, target, host, headers, body: data === undefined ? undefined : await readData(data) }
}

async function readData(data: string): Promise<string> {
  if (!data.startsWith('@')) return data
  try {
    return await readFileArgument(data.slice(1))
  } catch (error) {
    throw new CommandError(
      `--data cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      status.usage,
    )
  }
}
