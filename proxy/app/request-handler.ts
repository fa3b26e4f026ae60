import { randomUUID } from 'node:crypto'
import type { Log } from '../../shared/log.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { compileClientLists, listedHeaders } from '../decide/client-lists.ts'
import { createLimitHeaders, limitHeaderNames } from '../decide/limit-headers/limit-headers.ts'
import { addedNames } from '../decide/refusal.ts'
import { createCorsHeaders, noCorsHeaders, type CorsHeaders } from '../http/cors.ts'
import { createRequestClassifier } from '../http/header-roles.ts'
import { singleParts, type Policy } from '../policy.ts'
import { createUntrustedProxyWarning } from '../request/addresses/untrusted-proxy-warning.ts'
import { preflightRules } from '../rules/preflight-rules.ts'
import { compileRules } from '../rules/rule-table.ts'
import type { HandlerOptions } from '../server/handler-options.ts'
import { createHandler, type Handler } from '../server/handler.ts'
import { createAccessLog } from '../telemetry/access-log.ts'
import { createFailureLog } from '../telemetry/failure-log.ts'
import { createRefusalLog } from '../telemetry/refusal-log.ts'
import type { UpstreamPool } from '../upstream/pool.ts'
import type { ClientConnections } from './connections.ts'

/** What the steps of a request use. */
export type HandlerDeps = Pick<
  HandlerOptions,
  'limiter' | 'tokens' | 'throttledClients' | 'addresses' | 'telemetry' | 'onException' | 'isStopping' | 'now'
> & {
  readonly rules: GatewaySettings['rules']
  readonly connections: ClientConnections
  readonly pool: UpstreamPool
  readonly log: Log
}

/** The steps of a request, as the settings have them. */
export function composeHandler(settings: GatewaySettings, deps: HandlerDeps): Handler {
  const { rules, limiter, throttledClients, addresses, connections, pool } = deps
  const { telemetry, onException, isStopping, now, log } = deps
  const lists = { allowList: settings.allowList, denyList: settings.denyList, rules }
  return createHandler({
    rules: compileRules(rules),
    preflightRules: settings.cors && compileRules(preflightRules(rules)),
    corsHeaders: composeCors(settings),
    clientLists: compileClientLists(lists),
    tokens: deps.tokens,
    limiter,
    refusals: settings.refusals,
    limitHeaders: createLimitHeaders(settings.rateLimitHeaders),
    throttledClients,
    addresses,
    addressOf: (socket) => connections.connectionLimit.addressOf(socket),
    slowClients: connections.slowClients,
    maxTargetBytes: settings.maxTargetBytes,
    maxHeaderCount: settings.maxHeaderCount,
    forwarder: {
      pool,
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
    telemetry,
    onException,
    upstreamPrefix: settings.upstreamUrl.pathname.replace(/\/$/, ''),
    upstreamHost: settings.upstreamUrl.host,
    classifyField: createRequestClassifier(
      [...rules.flatMap(({ policy }) => headersOf(policy)), ...listedHeaders(lists)],
      settings.keepUnusualHeaders,
      settings.clientAddressHeader,
    ),
    scheme: settings.tlsCertFile === undefined ? 'http' : 'https',
    makeRequestId: randomUUID,
    now,
    isStopping,
    onUntrustedProxy: createUntrustedProxyWarning(log, settings),
    onRejected: (requestId, status, reason) => log.debug({ requestId, status, reason }, 'request rejected'),
    onRefused: settings.refusalLog ? createRefusalLog(log, settings) : undefined,
    onFinished: settings.accessLog ? createAccessLog(log, settings) : undefined,
  })
}

/** Scripts can read when to come back, what is left, of which request to tell an operator, and what refusals add. */
function composeCors({ cors, rateLimitHeaders, refusals }: GatewaySettings): CorsHeaders {
  if (!cors) return noCorsHeaders
  const exposed = ['Retry-After', ...limitHeaderNames(rateLimitHeaders), 'X-Request-Id']
  return createCorsHeaders(cors.origins, [...exposed, ...addedNames(refusals)])
}

/** The fields that tell a policy's clients apart. */
function headersOf({ partition }: Policy): string[] {
  return singleParts(partition).flatMap((part) => {
    if (part.kind === 'jwt') return ['authorization']
    return part.kind === 'header' ? [part.name] : []
  })
}
