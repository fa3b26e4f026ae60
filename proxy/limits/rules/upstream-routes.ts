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
  /** Whether only requests that the `over` of a rule sends here take the route. */
  readonly onlyOver?: true
  /** The literal prefix of the pattern is taken off. There are `paths` then, and each has one. */
  readonly stripPrefix?: true
  /** PEM certificates of the authorities that sign the servers' certificates, in place of those of `UPSTREAM_CA_FILE`. */
  readonly authorities?: string
}

/**
 * Whether requests that no route matches go to `upstream`: it was given, or only `over` leads to routes. Such routes are
 * no reason to send nothing to it.
 */
export function usesFallback(isGiven: boolean, routes: readonly UpstreamRoute[] | undefined): boolean {
  return isGiven || (routes !== undefined && routes.length > 0 && routes.every(({ onlyOver }) => onlyOver))
}

/** The field `health` of a route. */
export type RouteHealth = {
  /** The path on the server, whatever path its URL has. */
  readonly path: string
  readonly everyMs: number
  /** Probes in a row that fail before a server is not used. */
  readonly fails: number
  /** Probes in a row that pass before it is used again. */
  readonly passes: number
}

export type Balance = 'least-connections' | 'round-robin'

/** The routes, compiled once. To find one costs the same with ten routes or ten thousand. */
export type RouteTable<Found> = {
  /**
   * The compiled value of the first route that matches the resolved path.
   *
   * @param host as forwarded, of `readHost`
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

/** @returns a function that finds the place of the first route that matches, whatever hosts they are for */
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
