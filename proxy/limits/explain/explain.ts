import { chargesOf } from '../charges.ts'
import type { ClientRequest } from '../../http/message/messages.ts'
import type { Peer } from '../../request/addresses/client-address.ts'
import type { Target } from '../../request/target/target.ts'
import { DEFAULT_UPSTREAM } from '../../telemetry/counters.ts'
import type { TokenReader } from '../keys/tokens/token-reader.ts'
import { findAddressBan, findKeyBan, type ExplainedBan, type RunTimeState } from './bans.ts'
import { explainRule, type ExplainedRule } from './explain-rule.ts'
import { readRequest, type ReadRequest } from './read-request.ts'
import type { RequestTable } from './request-table.ts'

/** What the gateway makes of a request. */
export type Explanation = {
  /**
   * `rejected`: an error for its form. `answered`: OPTIONS, which the gateway answers itself. `denied`: 403 by `denyList`.
   * `banned`: refused for a ban that was set at run time. `limited`: some rule counts it. `forwarded`: none does.
   */
  readonly outcome: 'rejected' | 'answered' | 'denied' | 'banned' | 'limited' | 'forwarded'
  /** Of a request that is answered before it is counted. */
  readonly status?: number
  readonly why?: string
  readonly ban?: ExplainedBan
  /** Without the query, which may hold secrets; null where the request was rejected. */
  readonly path: string | null
  /** What rules match the path as: how backends may read it. */
  readonly readings: readonly string[]
  readonly host: string | null
  /** Where it goes if it is let pass: the name of a route, or `default` for `upstream`. Null where no route matches, or nothing was read. */
  readonly upstream: string | null
  readonly client: ExplainedClient
  readonly rules: readonly ExplainedRule[]
}

export type ExplainedClient = {
  readonly address: string
  /** What counts as one client under `key: ip`: the address, or the network of an IPv6 address. */
  readonly counts: string
  readonly peer: string
  readonly why: string
}

/** A request as the steps get it, and what they know beside it. */
export type Asked = {
  readonly table: RequestTable
  readonly tokens: TokenReader | undefined
  readonly peer: Peer
  readonly request: ClientRequest
  /** The request is a WebSocket handshake that is taken up. */
  readonly upgrades: boolean
  /** Of a running gateway. */
  readonly runTime?: RunTimeState | undefined
}

/** Takes the steps of a request up to its decision, in the order of `Exchange`. Counts nothing. */
export async function explain(asked: Asked): Promise<Explanation> {
  const { table, peer, request, tokens, upgrades, runTime } = asked
  const read = readRequest(table, peer, request, upgrades)
  const client = explainClient(asked, read)
  if (read.outcome === 'rejected') return { ...rejected(read.status, read.why), ...nothingRead, client }
  const { target, host } = read.head
  const readings = [target.matchPath, ...target.otherMatchPaths]
  const about = { path: target.path, readings, host, upstream: upstreamOf(table, target, host), client }
  if (read.outcome === 'answered')
    return { outcome: 'answered', status: 204, why: 'OPTIONS for the server itself', ...about, rules: [] }
  if (read.outcome === 'denied')
    return { outcome: 'denied', status: 403, why: 'denyList has the client', ...about, rules: [] }
  const addressBan = table.lists.allows(read.client, request)
    ? undefined
    : findAddressBan(runTime, read.client.prefix)
  const claims = await tokens?.read(read.applying, request)
  const source = { client: read.client, host, target, claims, addresses: table.addresses }
  const charges = chargesOf(read.applying, { ...source, request })
  if (!charges) {
    if (addressBan) return { ...addressBan, ...about, rules: [] }
    return { ...rejected(400, 'what a rule counts by can be read in more than 8 ways'), ...about, rules: [] }
  }
  const keySource = { ...source, headers: request.headers }
  const rules = table.rules.map((rule) => explainRule(rule, { table, request, read, charges, keySource }))
  const ban = addressBan ?? findKeyBan(runTime, charges)
  if (ban) return { ...ban, ...about, rules }
  return { outcome: charges.length > 0 ? 'limited' : 'forwarded', ...about, rules }
}

/** Of a request that the parser does not pass on. */
export function explainUnparsed({ client, address }: Peer, status: number, why: string): Explanation {
  const whose = 'the request could not be parsed'
  const named = { address: client.address, counts: client.prefix, peer: address, why: whose }
  return { ...rejected(status, why), ...nothingRead, client: named }
}

const nothingRead = { path: null, readings: [], host: null, upstream: null, rules: [] }

function upstreamOf({ routes }: RequestTable, target: Target, host: string): string | null {
  if (!routes) return DEFAULT_UPSTREAM
  return routes.table.find(target, host) ?? (routes.hasFallback ? DEFAULT_UPSTREAM : null)
}

function rejected(status: number, why: string) {
  return { outcome: 'rejected' as const, status, why }
}

function explainClient(
  { table: { addresses }, peer, request }: Asked,
  { client }: ReadRequest,
): ExplainedClient {
  const { header } = addresses
  const sent = request.headers[header] !== undefined
  const named = client === peer.client ? `names no client in ${header}` : `names the client in ${header}`
  const ignored = sent ? `, and its ${header} is ignored` : ''
  return {
    address: client.address,
    counts: client.prefix,
    peer: peer.address,
    why: peer.trusted ? `a trusted proxy ${named}` : `the peer is no trusted proxy${ignored}`,
  }
}
