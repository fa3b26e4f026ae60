import type { Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { createCorsHeaders, type CorsHeaders } from '../../http/fields/cors.ts'
import { createRequestClassifier } from '../../http/fields/header-roles.ts'
import { listedHeaders } from '../../limits/clients/lists/client-lists.ts'
import { addedNames, createLimitHeaders, limitHeaderNames } from '../../limits/replies.ts'
import type { RequestTable } from '../../limits/request-table.ts'
import { requestedUnits, type Policy } from '../../policy.ts'
import { singleParts } from '../../policy/partition.ts'
import { conditionHeaders } from '../../limits/rules/condition-needs.ts'
import { hideCookies } from '../../request/values/hidden-cookies.ts'
import type { TableOptions } from '../../server/handler-options.ts'

/** Composes the options for requests under a table. */
export function* composeTable(
  settings: GatewaySettings,
  { written, limits }: RequestTable,
  {
    tokens,
    limiter,
    isTraced,
    wallNow,
  }: Pick<TableOptions, 'tokens' | 'limiter'> & {
    readonly isTraced: boolean
    readonly wallNow: (() => number) | undefined
  },
): Steps<TableOptions> {
  const { allowList, denyList } = settings
  const hasBodies = limits.hasBodyRules || readsBodies(written)
  yield
  const deciding = new Set(written.flatMap((rule) => [...headersOf(rule.policy), ...conditionHeaders(rule)]))
  yield
  for (const name of listedHeaders({ allowList, denyList, rules: written })) deciding.add(name)
  yield
  return {
    ...limits,
    corsHeaders: composeCors(settings),
    tokens,
    limiter,
    hiddenCookies: composeHiddenCookies(settings),
    readsBodies: hasBodies,
    refusals: settings.refusals,
    limitHeaders: createLimitHeaders(settings.rateLimitHeaders, limits.hasBodyRules, wallNow),
    classifyField: createRequestClassifier(
      [...deciding, ...(hasBodies ? ['content-type', 'content-encoding'] : [])],
      settings.keepUnusualHeaders,
      settings.clientAddressHeader,
      [...(isTraced ? ['traceparent', 'tracestate'] : []), ...setNames(settings)],
    ),
  }
}

/** Returns the names of headers that the settings add for a backend. Clients cannot send these headers. */
function setNames({ requestHeaders, routes = [] }: GatewaySettings): string[] {
  return [requestHeaders, ...routes.map((route) => route.requestHeaders ?? [])].flatMap((fields) =>
    fields.filter((_, i) => i % 2 === 0),
  )
}

/** Composes the CORS headers. Scripts can read `Retry-After`, the limit headers, the request id, and the headers of refusals. */
function composeCors({ cors, rateLimitHeaders, refusals }: GatewaySettings): CorsHeaders | undefined {
  if (!cors) return undefined
  const exposed = ['Retry-After', ...limitHeaderNames(rateLimitHeaders), 'X-Request-Id']
  return createCorsHeaders(cors.origins, [...exposed, ...addedNames(refusals)])
}

/** Hides the cookies of all rules, because browsers still send them if rate limiting is disabled. */
function composeHiddenCookies({ rules }: GatewaySettings): TableOptions['hiddenCookies'] {
  const names = new Set(rules.flatMap(({ policy }) => policy.device?.cookie ?? []))
  return names.size > 0 ? hideCookies([...names]) : undefined
}

function readsBodies(rules: GatewaySettings['rules']): boolean {
  return rules.some(({ policy }) => requestedUnits(policy) !== undefined)
}

/** Returns the headers that identify a policy's clients. */
function headersOf({ partition, device, plans }: Policy): string[] {
  const ofKey = singleParts(partition).flatMap((part) => {
    if (part.kind === 'jwt') return ['authorization']
    if (part.kind === 'cookie') return ['cookie']
    return part.kind === 'header' ? [part.name] : []
  })
  return [...ofKey, ...(device ? ['cookie'] : []), ...(plans?.claim === undefined ? [] : ['authorization'])]
}
