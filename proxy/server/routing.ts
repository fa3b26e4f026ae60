import type { ForwarderOptions } from '../http/forward/forward.ts'
import { MAX_TAGS, privateReference, type ReferenceNames } from '../http/forward/private-references.ts'
import type { HeaderList } from '../http/message/header-list.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { PolicyState } from '../limits/limiter.ts'
import type { StripPrefix } from '../limits/rules/strip-prefix.ts'
import type { RouteTable } from '../limits/rules/upstream-routes.ts'
import type { RequestHead } from '../request/request-head.ts'
import { readTarget } from '../request/target/target.ts'

/** A backend, and how requests to it are rewritten. */
export type RoutedUpstream = {
  /** The name of the route; undefined for `upstream`, which takes requests without a route. */
  readonly name: string | undefined
  readonly forwarder: ForwarderOptions
  /** The path prefix of the backend, without a trailing slash; empty if it has none. */
  readonly prefix: string
  /** The `Host` for the backend; undefined: the request's host. */
  readonly upstreamHost: string | undefined
  /** Headers that the operator has set for the backend. */
  readonly setHeaders: HeaderList
  /** Whether caches must not store responses, because they are not those of the requested URL. */
  readonly isUncached: boolean
  /** Removes the prefix of a path; undefined if the whole path is forwarded. */
  readonly stripPrefix: StripPrefix | undefined
}

export type RoutedUpstreams = {
  readonly table: RouteTable<RoutedUpstream>
  /** Whether requests that no route matches go to `upstream`; otherwise they get 404. */
  readonly hasFallback: boolean
  /** The destination of requests over the limit of a rule, by the rule's name; undefined if no rule sends them to a route. */
  readonly ofRules: ReadonlyMap<string, RoutedUpstream> | undefined
}

export type RoutingOptions = {
  /** The routes; undefined if everything goes to `upstream`. */
  readonly routes: RoutedUpstreams | undefined
  /** The destination of `upstream`. */
  readonly defaultUpstream: RoutedUpstream
}

/** The parts of a request that are rewritten for its backend. */
export type RewrittenRequest = {
  readonly target: string
  /** The path prefix that is removed for the backend. */
  readonly strippedPrefix: string | undefined
  /** How references in the request's headers are renamed; undefined if they are not. */
  readonly references: ReferenceNames | undefined
}

/** The name of the first rule whose limit the request exceeds and that sends such requests to a route; undefined if there is none. */
export function routingRule({ routes }: RoutingOptions, states: readonly PolicyState[]): string | undefined {
  const ofRules = routes?.ofRules
  return ofRules && states.find(({ policy, exceeded }) => exceeded && ofRules.has(policy.name))?.policy.name
}

/**
 * Returns the destination of a request; undefined if no route matches it and there is no `upstream`.
 *
 * @param routedBy the rule that sends the request to a route, as `routingRule` returns it
 */
export function findUpstream(
  { routes, defaultUpstream }: RoutingOptions,
  { target, host }: RequestHead,
  routedBy: string | undefined,
): RoutedUpstream | undefined {
  if (!routes) return defaultUpstream
  if (routedBy !== undefined) return routes.ofRules?.get(routedBy)
  return routes.table.find(target, host) ?? (routes.hasFallback ? defaultUpstream : undefined)
}

/** Rewrites a request for its destination. Returns the reason if the request cannot be sent there. */
export function rewriteFor(
  upstream: RoutedUpstream,
  request: ClientRequest,
  { target, host }: RequestHead,
): RewrittenRequest | string {
  const stripped = upstream.stripPrefix?.(target)
  if (upstream.stripPrefix && !stripped)
    return 'the path spells the prefix of the route differently, or no path follows the prefix'
  const references = referencesOf(request, host, upstream)
  const { destination } = request.headers
  if (
    references &&
    typeof destination === 'string' &&
    !privateReference('destination', destination, references)
  )
    return 'Destination is not below the prefix of the route'
  return {
    target: upstream.prefix + (stripped?.target ?? target.forwardTarget),
    strippedPrefix: stripped?.prefix,
    references,
  }
}

/** How references in a request's headers are renamed for the backend; undefined without references, or if the names are the same. */
function referencesOf(
  { headers }: ClientRequest,
  publicHost: string,
  { prefix, upstreamHost: sentHost = publicHost, stripPrefix, setHeaders }: RoutedUpstream,
): ReferenceNames | undefined {
  if (headers['destination'] === undefined && headers['if'] === undefined) return undefined
  if (!stripPrefix && prefix === '' && sentHost === publicHost) return undefined
  // Backends that read this header, such as Radicale, remove the prefix themselves.
  if (stripPrefix && setHeaders.has('x-script-name')) return undefined
  const toPrivate = (path: string): string | undefined => {
    const target = readTarget('GET', path, { headers: {} })
    if (typeof target === 'string' || target.authority !== undefined) return undefined
    const rest = stripPrefix ? stripPrefix(target)?.target : target.forwardTarget
    return rest === undefined ? undefined : prefix + rest
  }
  return { publicHost, sentHost, toPrivate, tagsLeft: MAX_TAGS }
}
