import type { Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { OVER_HEADER } from '../../http/fields/removed-headers.ts'
import type { ForwarderOptions } from '../../http/forward/forward.ts'
import { headerListOf } from '../../http/message/header-list.ts'
import { createPrefixStripper } from '../../limits/rules/strip-prefix.ts'
import { compileRoutes } from '../../limits/rules/upstream-routes.ts'
import { overRouteOf, type Rule } from '../../policy.ts'
import type { RoutedUpstream, RoutedUpstreams } from '../../server/routing.ts'
import type { RoutedGroup } from '../upstreams/upstream.ts'

/** @param requestHeaders headers that the settings file adds: name, value, name, value… */
export function composeDefaultUpstream(
  settings: GatewaySettings,
  requestHeaders: readonly string[],
  forwarder: ForwarderOptions,
): RoutedUpstream {
  return {
    name: undefined,
    forwarder,
    prefix: prefixOf(settings.upstreamUrl),
    upstreamHost: sentHostOf(settings),
    setHeaders: headerListOf(requestHeaders),
    isUncached: false,
    stripPrefix: undefined,
  }
}

function sentHostOf({ upstreamHost, upstreamUrl }: GatewaySettings): string | undefined {
  if (upstreamHost === 'keep') return undefined
  return upstreamHost === 'upstream' ? upstreamUrl.host : upstreamHost
}

/** Composes the routes. Each has a forwarder of its own, so that requests cost nothing more if there are no routes. */
export function* composeRoutes(
  { routes = [], hasFallback, requestHeaders: ofFile }: GatewaySettings,
  rules: readonly Rule[],
  routed: readonly RoutedGroup[],
  {
    failuresOf,
    ...forwarder
  }: ForwarderOptions & {
    /** The log of the failures of a route's backend. */
    readonly failuresOf: (route: string) => ForwarderOptions['onFailure']
  },
): Steps<RoutedUpstreams> {
  const found: RoutedUpstream[] = []
  for (const { route, group } of routed) {
    const { name, upstream, upstreamHost, stripPrefix, paths, requestHeaders = [] } = route
    found.push({
      name,
      forwarder: {
        ...forwarder,
        upstream: group,
        telemetry: forwarder.telemetry.ofUpstream(name),
        onFailure: failuresOf(name),
      },
      prefix: prefixOf(new URL(upstream[0] ?? 'http://unknown')),
      upstreamHost,
      setHeaders: headerListOf(mergeHeaders(ofFile, requestHeaders)),
      isUncached: false,
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

/** Maps rules to the routes of their requests over the limit. Such requests get a header with the name of the rule. */
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

/** The path of a backend's URL, which is put before the path of each request. */
function prefixOf({ pathname }: URL): string {
  return pathname.replace(/\/$/, '')
}

/** Merges the headers of a route into the headers of the file. The route's headers replace those of the same name. */
function mergeHeaders(ofFile: readonly string[], ofRoute: readonly string[]): readonly string[] {
  const isReplaced = (name: string): boolean => ofRoute.some((other, i) => i % 2 === 0 && other === name)
  return [...ofFile.filter((_, i) => !isReplaced(ofFile[i - (i % 2)] ?? '')), ...ofRoute]
}
