import type { ClientRequest } from '../../http/message/client-request.ts'
import type { ClientAddress, Peer } from '../../request/addresses/client-address.ts'
import type { Target } from '../../request/target/target.ts'
import { DEFAULT_UPSTREAM } from '../../telemetry/metrics/upstream-counters.ts'
import type { TokenReader } from '../keys/tokens/token-reader.ts'
import { decideRequest } from '../decide.ts'
import type { RequestContext } from '../verdict.ts'
import { readsBody } from '../../policy/partition.ts'
import type { RequestHead } from '../../request/request-head.ts'
import type { UnreadKey } from '../../telemetry/telemetry.ts'
import { KeyBody } from '../keys/body/key-body.ts'
import { bodyNamesOf } from '../keys/body/names/body-names.ts'
import type { Denial } from '../clients/lists/client-lists.ts'
import { parseAddress } from '../../request/addresses/ip-address.ts'
import { readListInThread } from '../../request/addresses/lists/read-in-thread.ts'
import type { RequestTable } from '../request-table.ts'
import { explainBan, type ExplainedBan, type RunTimeState } from './bans.ts'
import { explainRule, type ExplainedRule } from './explain-rule.ts'
import { countsNothing, createUnservedRequest, noEntries, readPartOf } from './unserved-request.ts'

/** The explanation of a request. */
export type Explanation = {
  /**
   * `rejected`: malformed, or not supported. `answered`: OPTIONS, which the gateway answers itself. `denied`: 403 by `denyList` or
   * CrowdSec. `banned`: refused because of a ban. `limited`: at least one rule counts it. `forwarded`: no rule counts it.
   */
  readonly outcome: 'rejected' | 'answered' | 'denied' | 'banned' | 'limited' | 'forwarded'
  /** The status of a request that is answered before it is counted. */
  readonly status?: number
  readonly why?: string
  readonly ban?: ExplainedBan
  /** The path, without the query, which may contain secrets; null if the request was rejected. */
  readonly path: string | null
  /** The readings of the path that rules match, one for each way in which backends may read it. */
  readonly readings: readonly string[]
  readonly host: string | null
  /** The route of the request if it is allowed, or `default` for `upstream`; null if no route matches, or the request was rejected. */
  readonly upstream: string | null
  readonly client: ExplainedClient
  readonly rules: readonly ExplainedRule[]
}

export type ExplainedClient = {
  readonly address: string
  /** The client under `key: ip`: the address, or the network of an IPv6 address. */
  readonly counts: string
  readonly peer: string
  readonly why: string
}

/** The inputs of `explain`. */
export type RequestToExplain = {
  readonly table: RequestTable
  readonly tokens: TokenReader | undefined
  readonly peer: Peer
  readonly request: ClientRequest
  /** Whether the request is a WebSocket handshake that the gateway accepts. */
  readonly upgrades: boolean
  /** The body; undefined if the request has none. */
  readonly body?: Buffer | undefined
  /** The state of a running gateway, if there is one. */
  readonly runTime?: RunTimeState | undefined
}

/** Decides about a request in the same way as about requests that are served, and explains why. Counts nothing. */
export async function explain(asked: RequestToExplain): Promise<Explanation> {
  const { table, peer, request, tokens, upgrades, body, runTime } = asked
  const context = createUnservedRequest(request, peer, table.head, { upgrades, body })
  const unread = new Map<string, UnreadKey>()
  context.onUnreadKey = ({ name }, reason) => unread.set(name, reason)
  const entries = runTime?.entries ?? noEntries
  const active = { ...table.limits, entries, tokens, readsBodies: true, limiter: countsNothing }
  const verdict = await decideRequest(context, active)
  const read = describeRead(asked, context)
  switch (verdict.outcome) {
    case 'rejected': {
      const rejected = { outcome: 'rejected', status: verdict.reply.status, why: verdict.reason } as const
      return verdict.rejection === 'ambiguous-key'
        ? { ...rejected, ...read, rules: [] }
        : { ...rejected, ...nothingRead, client: read.client }
    }
    case 'answered':
      return { outcome: 'answered', status: 204, why: 'OPTIONS for the server itself', ...read, rules: [] }
    case 'denied':
      return { outcome: 'denied', status: 403, why: await whyDenied(verdict.by, context), ...read, rules: [] }
    case 'banned': {
      const ban = runTime && explainBan(verdict.ban, context, runTime)
      // The rules that would count the request without the ban.
      const otherwise = await decideRequest(context, { ...active, entries: noEntries })
      const rules = otherwise.outcome === 'rejected' ? [] : await explainRules(asked, context, unread)
      return { outcome: 'banned', ...ban, ...read, rules }
    }
    case 'forward':
      return { outcome: 'forwarded', ...read, rules: await explainRules(asked, context, unread) }
    default:
      return { outcome: 'limited', ...read, rules: await explainRules(asked, context, unread) }
  }
}

/** Returns the entry that denies the client. Reads the list file again to find the entry's line. */
async function whyDenied({ list, location }: Denial, { clientAddress }: RequestContext): Promise<string> {
  if (location === undefined)
    return list === 'crowdsec' ? 'CrowdSec has banned the client' : 'denyList contains the client'
  const address = parseAddress(clientAddress.address)
  const read = await readListInThread(location, address).catch(() => undefined)
  const line = read && 'found' in read ? `, line ${read.found}` : ''
  return `denyList contains the client: ${list}${line}`
}

/** Explains a request that the parser rejects. */
export function explainUnparsed({ client, address }: Peer, status: number, why: string): Explanation {
  const whose = 'the request could not be parsed'
  const named = { address: client.address, counts: client.prefix, peer: address, why: whose }
  return { outcome: 'rejected', status, why, ...nothingRead, client: named }
}

const nothingRead = { path: null, readings: [], host: null, upstream: null, rules: [] }

function describeRead(
  asked: RequestToExplain,
  { head, clientAddress }: RequestContext,
): Omit<Explanation, 'outcome' | 'rules'> {
  const client = explainClient(asked, clientAddress)
  if (!head) return { ...nothingRead, client }
  const { target, host } = head
  const readings = [target.matchPath, ...target.otherMatchPaths]
  return { path: target.path, readings, host, upstream: upstreamOf(asked.table, target, host), client }
}

async function explainRules(
  { table, request, tokens, body, runTime }: RequestToExplain,
  context: RequestContext,
  unread: ReadonlyMap<string, UnreadKey>,
): Promise<readonly ExplainedRule[]> {
  const { clientAddress: client, head, applying } = context
  if (!head) return []
  const claims = await tokens?.read(applying, request)
  const { host, target } = head
  const keySource = {
    client,
    host,
    target,
    claims,
    addresses: table.limits.addresses,
    geo: table.limits.geo,
    headers: request.headers,
    body: body && keyBodyOf(body, context, head),
  }
  return table.written.map((rule) => explainRule(rule, { table, context, head, keySource, runTime, unread }))
}

function keyBodyOf(body: Buffer, { request, applying }: RequestContext, { target }: RequestHead): KeyBody {
  const names = bodyNamesOf(applying.filter(readsBody))
  return new KeyBody(readPartOf(body), request, target.forwardTarget, names)
}

function upstreamOf({ routes }: RequestTable, target: Target, host: string): string | null {
  if (!routes) return DEFAULT_UPSTREAM
  return routes.table.find(target, host) ?? (routes.hasFallback ? DEFAULT_UPSTREAM : null)
}

function explainClient({ table, peer, request }: RequestToExplain, client: ClientAddress): ExplainedClient {
  const { header } = table.limits.addresses
  const sent = request.headers[header] !== undefined
  const named = client === peer.client ? `names no client in ${header}` : `names the client in ${header}`
  const ignored = sent ? `, and its ${header} is ignored` : ''
  return {
    address: client.address,
    counts: client.prefix,
    peer: peer.address,
    why: peer.trusted ? `a trusted proxy ${named}` : `the peer is not a trusted proxy${ignored}`,
  }
}
