import { randomUUID } from 'node:crypto'
import type { Log } from '../../../shared/log.ts'
import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { BodyMemory } from '../../http/forward/body/body-memory.ts'
import { createHeldBodyMemory } from '../../http/forward/body/held-body.ts'
import type { ForwarderOptions } from '../../http/forward/forward.ts'
import type { ClientTable } from '../../limits/clients/client-table.ts'
import { compileTableInSteps, type RequestTable } from '../../limits/request-table.ts'
import { Waiting } from '../../limits/waiting/waiting.ts'
import { maxDelayMs } from '../../policy.ts'
import type { Geo } from '../../request/addresses/geo/geo.ts'
import type { AddressLists } from '../../request/addresses/lists/address-lists.ts'
import { createUntrustedProxyWarning } from '../../request/addresses/untrusted-proxy-warning.ts'
import { headOptionsOf } from '../../request/request-head.ts'
import { createHandler } from '../../server/exchange.ts'
import type {
  FixedOptions,
  Handler,
  HandlerOptions,
  LiveOptions,
  RequestLog,
} from '../../server/handler-options.ts'
import { createAccessLog } from '../../telemetry/access-log.ts'
import { createFailureLog } from '../../telemetry/failure-log.ts'
import { DEFAULT_UPSTREAM } from '../../telemetry/metrics/upstream-counters.ts'
import { createRefusalLog } from '../../telemetry/refusal-log.ts'
import { createUnreadCostLog } from '../../telemetry/unread/unread-cost-log.ts'
import { createUnreadKeyLog } from '../../telemetry/unread/unread-key-log.ts'
import type { ClientConnections } from '../listen/connections.ts'
import { createUnusableLog } from '../listen/decisions/unusable-log.ts'
import type { Upstreams } from '../upstreams/upstream.ts'
import { composeDefaultUpstream, composeRoutes } from './route-options.ts'
import { composeTable } from './table-options.ts'

/** What the clients' listener is given for its requests. */
export type RequestDeps = Pick<
  HandlerOptions,
  'limiter' | 'throttledClients' | 'telemetry' | 'tracing' | 'isStopping'
> &
  ReadFiles & {
    /** The wall clock of calendar windows. Default: the machine's. */
    readonly wallNow?: (() => number) | undefined
    readonly clientTable: Pick<ClientTable, 'entries' | 'refused'>
    readonly log: Log
  }

/** Dependencies of the request handler: the given ones, and those that the listener makes. */
export type HandlerDeps = RequestDeps &
  Pick<HandlerOptions, 'addresses' | 'onException' | 'now'> & {
    readonly connections: ClientConnections
    readonly upstreams: Upstreams
  }

/** The content of files that the settings name: keys of tokens, lists of addresses, databases of countries. */
export type ReadFiles = {
  readonly tokens: HandlerOptions['tokens']
  readonly lists: AddressLists
  readonly geo: Geo | undefined
}

/** A handler of requests whose options a reload replaces. */
export type LiveHandler = {
  readonly handler: Handler
  /** The current options, which the decisions listener also uses. */
  readonly live: LiveOptions
  /** The tables for requests that begin now. */
  readTable(): RequestTable
  /** Whether a request with this charge would find a free place if it had to wait. */
  readonly hasPlace: Waiting['hasPlace']
  /**
   * Builds everything that requests need under another table. Only one build may run at a time, because each continues the current state.
   *
   * @returns a function that applies the table to requests that begin afterwards
   */
  prepare(settings: GatewaySettings, read: ReadFiles): Steps<() => void>
}

/** Composes the request handler. */
export function composeHandler(settings: GatewaySettings, deps: HandlerDeps): LiveHandler {
  const failuresOf = createFailureLog(deps.log)
  const fixed = composeFixed(settings, deps)
  const forwarder = composeForwarder(settings, deps, failuresOf(DEFAULT_UPSTREAM))
  const waiting = new Waiting(deps.now, deps.telemetry)
  const delaying = waiting.delaying(deps.limiter)
  function* compose(
    next: GatewaySettings,
    { tokens, lists, geo }: ReadFiles,
  ): Steps<LiveOptions & { readonly table: RequestTable; readonly useRoutes: () => void }> {
    const { routed, commit } = yield* deps.upstreams.prepare(next)
    const isTraced = deps.tracing !== undefined
    const table = yield* compileTableInSteps(next, deps.addresses, lists, geo)
    const defaultUpstream = composeDefaultUpstream(settings, next.requestHeaders, forwarder)
    const routes =
      next.routes && (yield* composeRoutes(next, table.written, routed, { ...forwarder, failuresOf }))
    const limiter = table.written.some(({ policy }) => maxDelayMs(policy) > 0) ? delaying : deps.limiter
    const { wallNow } = deps
    const ofTable = yield* composeTable(next, table, { tokens, limiter, isTraced, wallNow })
    return { options: { ...fixed, ...ofTable, routes, defaultUpstream }, table, useRoutes: commit }
  }
  let active = doAtOnce(compose(settings, deps))
  active.useRoutes()
  const live = { options: active.options }
  return {
    handler: createHandler(live),
    live,
    readTable: () => active.table,
    hasPlace: waiting.hasPlace,
    *prepare(next, read) {
      const prepared = yield* compose(next, read)
      return () => {
        active = prepared
        live.options = prepared.options
        prepared.useRoutes()
      }
    },
  }
}

function composeFixed(settings: GatewaySettings, deps: HandlerDeps): FixedOptions {
  const { throttledClients, connections } = deps
  const { telemetry, onException, isStopping, now, log } = deps
  return {
    ...composeRequestLog(settings, log),
    ...headOptionsOf(settings),
    entries: deps.clientTable.entries,
    banning: deps.clientTable,
    throttledClients,
    connections: connections.connectionLimit,
    slowClients: connections.slowClients,
    heldBodies: composeHeldBodies(telemetry),
    requestBuffering: settings.requestBuffering,
    telemetry,
    tracing: deps.tracing,
    onException,
    addsVia: settings.via,
    scheme: settings.tlsCertFile === undefined ? 'http' : 'https',
    makeRequestId: randomUUID,
    now,
    isStopping,
  }
}

function composeRequestLog(settings: GatewaySettings, log: Log): RequestLog {
  return {
    onUntrustedProxy: createUntrustedProxyWarning(log, settings),
    onRejected: (requestId, status, reason) => log.debug({ requestId, status, reason }, 'request rejected'),
    onUnusableAuthRequest: createUnusableLog(log, settings),
    onCostUnread: createUnreadCostLog(log),
    onKeyUnread: createUnreadKeyLog(log),
    onRefused: settings.accessLog === 'refused' ? createRefusalLog(log, settings) : undefined,
    onFinished: settings.accessLog === true ? createAccessLog(log, settings) : undefined,
  }
}

/** Composes the options for forwarding to `upstream`. */
function composeForwarder(
  { maxBodyBytes, responseBufferBytes, maxUnreadBytes }: GatewaySettings,
  { upstreams, telemetry, now }: HandlerDeps,
  onFailure: ForwarderOptions['onFailure'],
): ForwarderOptions {
  return {
    upstream: upstreams.fallback,
    telemetry,
    maxBodyBytes,
    readAhead: { perResponseBytes: responseBufferBytes, totalBytes: maxUnreadBytes / 2, bufferedBytes: 0 },
    now,
    onFailure,
  }
}

function composeHeldBodies(telemetry: HandlerDeps['telemetry']): BodyMemory {
  const memory = createHeldBodyMemory()
  telemetry.observeTable('held-bodies', () => memory.readUse())
  return memory
}
