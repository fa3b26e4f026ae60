import type { Steps } from '../../../shared/steps.ts'
import { comparableHost } from '../../request/host.ts'
import type { Target } from '../../request/target/target.ts'
import { createHostTables } from './host-tables.ts'
import { createPathTree, findInTree, readRoutePattern, valueAt } from './path-tree.ts'

/** An entry of `routes:`. */
export type UpstreamRoute = {
  /** The name in metrics and logs. */
  readonly name: string
  /** Hosts, written as in a rule; without them, every host. */
  readonly hosts?: readonly string[]
  /** Path patterns, written as in a rule without a method; without them, every path. */
  readonly paths?: readonly string[]
  /** Base URLs of the servers, each without a final slash. They have the same path. Never empty. */
  readonly upstream: readonly string[]
  readonly balance: Balance
  /** How the servers are probed; without it they are not. */
  readonly health?: RouteHealth
  /** The `Host` for the servers; without it, that of the request. */
  readonly upstreamHost?: string
  /** Headers that the servers get: name, value, name, value… with names in lower case. */
  readonly requestHeaders?: readonly string[]
  /** Whether the route takes only requests that the `over` of a rule sends to it. */
  readonly onlyOver?: true
  /** Whether the literal prefix of the pattern is removed from the path. If so, `paths` is set and each pattern has a prefix. */
  readonly stripPrefix?: true
  /** PEM certificates of the authorities that sign the servers' certificates, in place of those of `UPSTREAM_CA_FILE`. */
  readonly authorities?: string
}

/**
 * Whether requests that no route matches go to `upstream`: if it was given, or if every route takes only requests sent by `over`.
 * Such routes do not replace `upstream`.
 */
export function usesFallback(isGiven: boolean, routes: readonly UpstreamRoute[] | undefined): boolean {
  return isGiven || (routes !== undefined && routes.length > 0 && routes.every(({ onlyOver }) => onlyOver))
}

/** The field `health` of a route. */
export type RouteHealth = {
  /** The path on the server, regardless of the path in its URL. */
  readonly path: string
  readonly everyMs: number
  /** The number of consecutive failed probes after which a server is no longer used. */
  readonly fails: number
  /** The number of consecutive successful probes after which it is used again. */
  readonly passes: number
}

export type Balance = 'least-connections' | 'round-robin'

/** The routes, compiled once. Finding one costs the same with ten routes or ten thousand. */
export type RouteTable<Found> = {
  /**
   * Returns the value of the first route that matches the resolved path.
   *
   * @param host the forwarded host, from `readHost`
   */
  find(target: Pick<Target, 'routePath'>, host: string): Found | undefined
}

/** The place in the table of the first route with a pattern. */
type First = { order: number }
type Placed = { readonly route: Pick<UpstreamRoute, 'paths'>; readonly order: number }

const noRoute = Number.POSITIVE_INFINITY
const everyPath = ['/*']

/** @param found the value of each route, in the table's order */
export function* compileRoutes<Found>(
  routes: readonly Pick<UpstreamRoute, 'hosts' | 'paths' | 'onlyOver'>[],
  found: readonly Found[],
): Steps<RouteTable<Found>> {
  const placed = [...routes.entries()]
    .filter(([, { onlyOver }]) => !onlyOver)
    .map(([order, route]) => ({ route, order, hosts: route.hosts ?? [] }))
  const findOfAll = yield* compilePaths(placed.filter(({ hosts }) => hosts.length === 0))
  const ofSomeHosts = placed.filter(({ hosts }) => hosts.length > 0)
  const tables = ofSomeHosts.length === 0 ? undefined : yield* createHostTables(ofSomeHosts, compilePaths)
  return {
    find({ routePath }, host) {
      let first = findOfAll(routePath)
      if (tables)
        for (const find of tables.find(comparableHost(host))) first = Math.min(first, find(routePath))
      return first === noRoute ? undefined : found[first]
    },
  }
}

/** @returns a function that finds the place of the first route that matches a path, without regard to hosts */
function* compilePaths(routes: readonly Placed[]): Steps<(routePath: string) => number> {
  const tree = createPathTree<First>()
  for (const { route, order } of routes) {
    for (const path of route.paths ?? everyPath) {
      const first = valueAt(tree, readRoutePattern(path), () => ({ order }))
      first.order = Math.min(first.order, order)
      yield
    }
  }
  return (routePath) => {
    const found: First[] = []
    findInTree(tree, routePath, 1, found)
    return found.reduce((first, { order }) => Math.min(first, order), noRoute)
  }
}
