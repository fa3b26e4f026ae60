import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { problemAt, showValue, type Place, type Problem } from '../../../shared/settings/problems.ts'
import type { UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import { maxDelayMs, type Rule } from '../../policy.ts'
import { writtenName } from '../rules/limits.ts'
import { isCovered, toSegments, type SegmentedPattern } from '../rules/pattern-cover.ts'
import type { PlaceOfRule } from './table.ts'

/**
 * Finds rules whose `over` names a route that does not exist, or that cannot take any request.
 *
 * @param written the routes as written, of any type
 * @param routes the routes as read; empty unless all of them are valid
 */
export function findUnroutable(
  rules: readonly Rule[] = [],
  written: unknown,
  routes: readonly Pick<UpstreamRoute, 'name' | 'stripPrefix'>[] = [],
  placeOf: PlaceOfRule,
): Problem[] {
  const names = (Array.isArray(written) ? (written as readonly unknown[]) : []).flatMap(
    (route) => writtenName(route) ?? [],
  )
  return [...rules.entries()].flatMap(([index, { policy }]) => {
    if (!policy.over || !('route' in policy.over)) return []
    const mistake = mistakeIn(policy.over.route, names, routes)
    return mistake === undefined ? [] : [problemAt(placeOf(index, 'over'), mistake)]
  })
}

function mistakeIn(
  name: string,
  names: readonly string[],
  routes: readonly Pick<UpstreamRoute, 'name' | 'stripPrefix'>[],
): string | undefined {
  if (!names.includes(name)) {
    const near = nearestWord(name, names)
    const hint = near === undefined ? 'needs the name of an entry of routes' : `did you mean ${near}?`
    return `got route ${showValue(name)}, ${hint}`
  }
  return routes.some((route) => route.name === name && route.stripPrefix)
    ? `names route ${showValue(name)}, needs one without stripPrefix, as any path can be over the limit`
    : undefined
}

/** Warns of routes that no request takes. */
export function warnOfIdleRoutes(
  routes: readonly Pick<UpstreamRoute, 'name' | 'onlyOver' | 'hosts' | 'paths'>[] = [],
  rules: readonly Rule[],
  placeOf: (index: number, field?: 'onlyOver') => Place,
): string[] {
  const named = new Set(rules.flatMap(({ policy: { over } }) => (over && 'route' in over ? over.route : [])))
  const earlier = new TakenPaths()
  return [...routes.entries()].flatMap(([index, route]) => {
    const { name, onlyOver } = route
    const isIdle = onlyOver ?? earlier.addAll(route)
    if (!isIdle || named.has(name)) return []
    return onlyOver
      ? `${placeOf(index, 'onlyOver').label}: no request takes the route, as no rule has over: { route: ${name} }`
      : `${placeOf(index).label}: no request takes the route, as routes before it take all that it matches: put it before them`
  })
}

/** The paths that routes take, by host and first segment, because there may be thousands. */
class TakenPaths {
  readonly #paths = new Map<string, SegmentedPattern[]>()

  /** Adds the paths of a route. Returns whether they were all taken before. */
  addAll({ hosts = [''], paths = ['/*'] }: Pick<UpstreamRoute, 'hosts' | 'paths'>): boolean {
    const patterns = paths.map((path) => toSegments({ methods: [], path }))
    const all = hosts.flatMap((host) => patterns.map((pattern) => ({ host, pattern })))
    const areTaken = all.every(({ host, pattern }) => isCovered(pattern, this.#similar(host, pattern)))
    for (const { host, pattern } of all) {
      const key = keyOf(host, pattern.segments[0])
      const known = this.#paths.get(key)
      if (known) known.push(pattern)
      else this.#paths.set(key, [pattern])
    }
    return areTaken
  }

  #similar(host: string, { segments: [first] }: SegmentedPattern): readonly SegmentedPattern[] {
    const parents = [...host.matchAll(/\./g)].map(({ index }) => `*${host.slice(index)}`)
    return ['', host, ...parents].flatMap((wide) =>
      [first, ':', '*'].flatMap((segment) => this.#paths.get(keyOf(wide, segment)) ?? []),
    )
  }
}

/** @param segment the first segment of a path; undefined for `/` */
function keyOf(host: string, segment: string | undefined): string {
  return `${host} ${segment?.startsWith(':') ? ':' : (segment ?? '')}`
}

/** Warns of delays that are shorter than the time between two turns. */
export function warnOfShortDelays(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  return [...rules.entries()].flatMap(([index, { policy }]) => {
    const delayMs = maxDelayMs(policy)
    const reserve = policy.cost?.reserve
    const turnMs = (policy.windowMs / policy.quota) * (typeof reserve === 'number' ? reserve : 1)
    if (delayMs === 0 || delayMs >= turnMs) return []
    const { label } = placeOf(index, 'over')
    return `${label}: turns are ${turnMs / 1000} s apart, so most requests are refused; a longer delay lets them wait`
  })
}
