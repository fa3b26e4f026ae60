import { randomUUID } from 'node:crypto'
import type { Log } from '../../shared/log.ts'
import { doAtOnce, type Steps } from '../../shared/steps.ts'
import { mergeHeaders } from '../config/routes/request-headers.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { listedHeaders } from '../limits/clients/lists/client-lists.ts'
import type { ClientTable } from '../limits/clients/client-table.ts'
import { addedNames, createLimitHeaders, limitHeaderNames } from '../limits/replies.ts'
import { createWaiting, type Waiting } from '../limits/waiting/waiting.ts'
import { compileTableInSteps, type RequestTable } from '../limits/request-table.ts'
import { HeldBodyMemory } from '../http/forward/body/held-body.ts'
import { createCorsHeaders, type CorsHeaders } from '../http/fields/cors.ts'
import { headerListOf } from '../http/message/header-list.ts'
import { OVER_HEADER } from '../http/fields/removed-headers.ts'
import { createRequestClassifier } from '../http/fields/header-roles.ts'
import { conditionHeaders } from '../policy/condition-needs.ts'
import { maxDelayMs, overRouteOf, requestedUnits, singleParts, type Policy, type Rule } from '../policy.ts'
import type { Geo } from '../request/addresses/geo/geo.ts'
import type { AddressLists } from '../request/addresses/lists/address-lists.ts'
import { hideCookies } from '../request/values/hidden-cookies.ts'
import { createUntrustedProxyWarning } from '../request/addresses/untrusted-proxy-warning.ts'
import { createPrefixStripper } from '../limits/rules/strip-prefix.ts'
import { compileRoutes } from '../limits/rules/upstream-routes.ts'
import type {
  Handler,
  LiveOptions,
  HandlerOptions,
  RoutedUpstream,
  RoutedUpstreams,
} from '../server/handler-options.ts'
import { createHandler } from '../server/exchange.ts'
import { createAccessLog } from '../telemetry/access-log.ts'
import { createFailureLog } from '../telemetry/failure-log.ts'
import { createRefusalLog } from '../telemetry/refusal-log.ts'
import { createUnreadKeyLog } from '../telemetry/unread/unread-key-log.ts'
import { createUnreadCostLog } from '../telemetry/unread/unread-cost-log.ts'
import type { ClientConnections } from './listen/connections.ts'
import { createUnusableLog } from './listen/decisions/unusable-log.ts'
import type { RoutedGroup, Upstreams } from './upstreams/upstream.ts'

/** Dependencies of the steps of a request. */
export type HandlerDeps = Pick<
  HandlerOptions,
  | 'limiter'
  | 'tokens'
  | 'throttledClients'
  | 'addresses'
  | 'telemetry'
  | 'tracing'
  | 'onException'
  | 'isStopping'
  | 'now'
> &
  ReadFiles & {
    readonly clientTable: Pick<ClientTable, 'entries' | 'refused'>
    readonly connections: ClientConnections
    readonly upstreams: Upstreams
    readonly log: Log
  }

/** What settings name, read: keys of tokens, lists of addresses, databases of countries. */
type ReadFiles = {
  readonly tokens: HandlerOptions['tokens']
  readonly lists: AddressLists
  readonly geo: Geo | undefined
}

/** The parts of the table of limits that a request needs; the table can change while the gateway runs. */
type TableOptions = Pick<
  HandlerOptions,
  | 'rules'
  | 'preflightRules'
  | 'corsHeaders'
  | 'clientLists'
  | 'accountOverrides'
  | 'conditions'
  | 'geo'
  | 'tokens'
  | 'devices'
  | 'hiddenCookies'
  | 'hasBodyKeys'
  | 'hasPlans'
  | 'readsBodies'
  | 'refusals'
  | 'limitHeaders'
  | 'classifyField'
  | 'setHeaders'
  | 'limiter'
>

export type LiveHandler = {
  readonly handler: Handler
  /** The options in force, for another listener too. */
  readonly live: LiveOptions
  /** The tables for requests that begin now. */
  readTable(): RequestTable
  /** Whether a request with this charge would find a place to wait, if it had to. */
  readonly hasPlace: Waiting['hasPlace']
  /**
   * Builds everything that requests need for another table. One build at a time, as each continues the state in force.
   *
   * @returns puts it in force, at once for requests that begin then
   */
  prepare(settings: GatewaySettings, read: ReadFiles): Steps<() => void>
}

/** Composes the steps of a request by the settings. */
export function composeHandler(settings: GatewaySettings, deps: HandlerDeps): LiveHandler {
  const fixed = composeFixed(settings, deps)
  const waiting = createWaiting(deps.now, deps.telemetry)
  const delaying = waiting.delaying(deps.limiter)
  function* compose(
    next: GatewaySettings,
    { tokens, lists, geo }: ReadFiles,
  ): Steps<LiveOptions & { readonly table: RequestTable; readonly useRoutes: () => void }> {
    const { routed, commit } = yield* deps.upstreams.prepare(next.routes ?? [])
    const isTraced = deps.tracing !== undefined
    const table = yield* compileTableInSteps(next, deps.addresses, lists, geo)
    const routes = next.routes && (yield* composeRoutes(next, table.written, routed, fixed.forwarder))
    const limiter = table.written.some(({ policy }) => maxDelayMs(policy) > 0) ? delaying : deps.limiter
    const ofTable = { ...(yield* composeTable(next, table, { tokens, isTraced })), limiter }
    return { options: { ...fixed, ...ofTable, routes }, table, useRoutes: commit }
  }
  let inForce = doAtOnce(compose(settings, deps))
  inForce.useRoutes()
  const live = { options: inForce.options }
  return {
    handler: createHandler(live),
    live,
    readTable: () => inForce.table,
    hasPlace: waiting.hasPlace,
    *prepare(next, read) {
      const prepared = yield* compose(next, read)
      return () => {
        inForce = prepared
        live.options = prepared.options
        prepared.useRoutes()
      }
    },
  }
}

function* composeTable(
  settings: GatewaySettings,
  {
    written,
    rules,
    preflightRules,
    clientLists,
    accountOverrides,
    conditions,
    geo,
    devices,
    hasBodyKeys,
    hasPlans,
  }: RequestTable,
  {
    tokens,
    isTraced,
  }: {
    readonly tokens: HandlerOptions['tokens']
    readonly isTraced: boolean
  },
): Steps<Omit<TableOptions, 'limiter'>> {
  const { allowList, denyList } = settings
  const hasBodies = hasBodyKeys || readsBodies(written)
  yield
  const deciding = new Set(written.flatMap((rule) => [...headersOf(rule.policy), ...conditionHeaders(rule)]))
  yield
  for (const name of listedHeaders({ allowList, denyList, rules: written })) deciding.add(name)
  yield
  return {
    rules,
    preflightRules,
    corsHeaders: composeCors(settings),
    clientLists,
    accountOverrides,
    conditions,
    geo,
    tokens,
    devices,
    hiddenCookies: composeHiddenCookies(settings),
    hasBodyKeys,
    hasPlans,
    readsBodies: hasBodies,
    refusals: settings.refusals,
    limitHeaders: createLimitHeaders(settings.rateLimitHeaders, hasBodyKeys),
    classifyField: createRequestClassifier(
      [...deciding, ...(hasBodies ? ['content-type', 'content-encoding'] : [])],
      settings.keepUnusualHeaders,
      settings.clientAddressHeader,
      [...(isTraced ? ['traceparent', 'tracestate'] : []), ...setNames(settings)],
    ),
    setHeaders: headerListOf(settings.requestHeaders),
  }
}

function composeFixed(
  settings: GatewaySettings,
  deps: HandlerDeps,
): Omit<HandlerOptions, keyof TableOptions | 'routes'> {
  const { throttledClients, addresses, connections, upstreams } = deps
  const { telemetry, onException, isStopping, now, log } = deps
  return {
    entries: deps.clientTable.entries,
    banning: deps.clientTable,
    throttledClients,
    addresses,
    addressOf: (socket) => connections.connectionLimit.addressOf(socket),
    slowClients: connections.slowClients,
    maxTargetBytes: settings.maxTargetBytes,
    maxHeaderCount: settings.maxHeaderCount,
    forwarder: {
      upstream: upstreams.fallback,
      telemetry,
      maxBodyBytes: settings.maxBodyBytes,
      readAhead: {
        perResponseBytes: settings.responseBufferBytes,
        totalBytes: settings.maxUnreadBytes / 2,
        heldBytes: 0,
      },
      now,
      onFailure: createFailureLog(log),
    },
    heldBodies: composeHeldBodies(telemetry),
    requestBuffering: settings.requestBuffering,
    telemetry,
    tracing: deps.tracing,
    onException,
    upstreamPrefix: prefixOf(settings.upstreamUrl),
    upstreamHost: settings.upstreamUrl.host,
    sentHost: sentHostOf(settings),
    addsVia: settings.via,
    scheme: settings.tlsCertFile === undefined ? 'http' : 'https',
    makeRequestId: randomUUID,
    now,
    isStopping,
    onUntrustedProxy: createUntrustedProxyWarning(log, settings),
    onRejected: (requestId, status, reason) => log.debug({ requestId, status, reason }, 'request rejected'),
    onUnusableAuthRequest: createUnusableLog(log, settings),
    onCostUnread: createUnreadCostLog(log),
    onKeyUnread: createUnreadKeyLog(log),
    onRefused: settings.accessLog === 'refused' ? createRefusalLog(log, settings) : undefined,
    onFinished: settings.accessLog === true ? createAccessLog(log, settings) : undefined,
  }
}

/** Each route has a forwarder, so that a request without routes costs nothing more. */
function* composeRoutes(
  { routes = [], hasFallback, requestHeaders: ofFile }: GatewaySettings,
  rules: readonly Rule[],
  routed: readonly RoutedGroup[],
  forwarder: HandlerOptions['forwarder'],
): Steps<RoutedUpstreams> {
  const found: RoutedUpstream[] = []
  for (const { route, group } of routed) {
    const { name, upstream, upstreamHost, stripPrefix, paths, requestHeaders = [] } = route
    found.push({
      name,
      forwarder: { ...forwarder, upstream: group, telemetry: forwarder.telemetry.ofUpstream(name) },
      prefix: prefixOf(new URL(upstream[0] ?? 'http://unknown')),
      upstreamHost,
      setHeaders: headerListOf(mergeHeaders(ofFile, requestHeaders)),
      stripPrefix: stripPrefix && createPrefixStripper(paths ?? []),
    })
    yield
  }
  return {
    hasFallback,
    table: yield* compileRoutes(routes, found),
    ofRules: yield* composeOver(rules, found),
  }
}

/** Each rule that sends its requests over the limit to a route says so there. */
function* composeOver(
  rules: readonly Rule[],
  found: readonly RoutedUpstream[],
): Steps<RoutedUpstreams['ofRules']> {
  const byName = new Map(found.map((route) => [route.name, route]))
  const ofRules = new Map<string, RoutedUpstream>()
  for (const { policy } of rules) {
    const route = byName.get(overRouteOf(policy) ?? '')
    if (route) {
      const setHeaders = headerListOf([OVER_HEADER, policy.name], route.setHeaders)
      ofRules.set(policy.name, { ...route, setHeaders, isUncached: true })
    }
    yield
  }
  return ofRules.size > 0 ? ofRules : undefined
}

/** Names of the headers that the operator has set for some backend: no client can send them. */
function setNames({ requestHeaders, routes = [] }: GatewaySettings): string[] {
  return [requestHeaders, ...routes.map((route) => route.requestHeaders ?? [])].flatMap((fields) =>
    fields.filter((_, i) => i % 2 === 0),
  )
}

function sentHostOf({ upstreamHost, upstreamUrl }: GatewaySettings): string | undefined {
  if (upstreamHost === 'keep') return undefined
  return upstreamHost === 'upstream' ? upstreamUrl.host : upstreamHost
}

function prefixOf({ pathname }: URL): string {
  return pathname.replace(/\/$/, '')
}

/** Headers that scripts can read: when to retry, the remaining quota, the request id, and the headers of refusals. */
function composeCors({ cors, rateLimitHeaders, refusals }: GatewaySettings): CorsHeaders | undefined {
  if (!cors) return undefined
  const exposed = ['Retry-After', ...limitHeaderNames(rateLimitHeaders), 'X-Request-Id']
  return createCorsHeaders(cors.origins, [...exposed, ...addedNames(refusals)])
}

function composeHeldBodies(telemetry: HandlerDeps['telemetry']): HeldBodyMemory {
  const memory = new HeldBodyMemory()
  telemetry.observeTable('held-bodies', () => memory.readUse())
  return memory
}

/** Browsers still send them with rate limiting off. */
function composeHiddenCookies({ rules }: GatewaySettings): HandlerOptions['hiddenCookies'] {
  const names = new Set(rules.flatMap(({ policy }) => policy.device?.cookie ?? []))
  return names.size > 0 ? hideCookies([...names]) : undefined
}

function readsBodies(rules: GatewaySettings['rules']): boolean {
  return rules.some(({ policy }) => requestedUnits(policy) !== undefined)
}

/** The fields that tell a policy's clients apart. */
function headersOf({ partition, device, plans }: Policy): string[] {
  const ofKey = singleParts(partition).flatMap((part) => {
    if (part.kind === 'jwt') return ['authorization']
    if (part.kind === 'cookie') return ['cookie']
    return part.kind === 'header' ? [part.name] : []
  })
  return [...ofKey, ...(device ? ['cookie'] : []), ...(plans?.claim === undefined ? [] : ['authorization'])]
}
