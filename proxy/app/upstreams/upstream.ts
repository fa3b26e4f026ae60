import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../shared/log.ts'
import type { Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Names } from '../../names/names.ts'
import type { UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import { DEFAULT_UPSTREAM } from '../../telemetry/metrics/upstream-counters.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { ServerPool } from '../../http/upstream/servers/server-pool.ts'
import { countServers, reportServers, type ServersReport } from '../../http/upstream/servers/report.ts'
import type { ResolvedGroup } from '../../http/upstream/servers/resolved-group.ts'
import type { Server } from '../../http/upstream/servers/server.ts'
import { createGroupFactory, type ServedRoute } from './server-group.ts'

/** The routes, and whether requests that no route matches go to `upstream`. */
type RouteSettings = Pick<GatewaySettings, 'routes' | 'hasFallback'>

/** A route with the group of servers for its requests. */
export type RoutedGroup = { readonly route: UpstreamRoute; readonly group: ResolvedGroup }

/** The connections to all backends. */
export type Upstreams = {
  /** The backend of `upstream:`. */
  readonly fallback: ResolvedGroup
  /**
   * Prepares the groups of servers of other routes. Routes that have not changed keep their connections.
   *
   * @returns the routes; `commit` applies them, and removed backends finish their requests in flight
   */
  prepare(settings: RouteSettings): Steps<{
    readonly routed: readonly RoutedGroup[]
    readonly commit: () => void
  }>
  /** The servers of all backends that requests can go to. */
  readServers(): ServersReport
  /** Ends all connections now. */
  destroy(): void
}

/** @param deps.now monotonic milliseconds */
export function composeUpstreams(
  settings: GatewaySettings,
  telemetry: Telemetry,
  deps: { readonly names: Names; readonly log: Log; readonly now: () => number },
): Upstreams {
  const { upstreamUrl, upstreamConnections, upstreamQueue, upstreamStreams } = settings
  const createGroup = createGroupFactory(settings, { ...deps, telemetry })
  const fallback = createGroup({
    name: DEFAULT_UPSTREAM,
    upstream: [upstreamUrl.href],
    balance: 'least-connections',
  })
  fallback.start()
  const upstreams = new LiveUpstreams(fallback, createGroup)
  const observe = (name: string, capacity: number, size: (pool: ServerPool) => number): void =>
    telemetry.observeTable(name, () => {
      const { pools } = upstreams
      return {
        size: pools.reduce((sum, pool) => sum + size(pool), 0),
        capacity: capacity * Math.max(1, pools.length),
        evictions: 0,
      }
    })
  observe('upstream-connections', upstreamConnections, (pool) => pool.size)
  observe('upstream-streams', upstreamStreams, (pool) => pool.streams)
  observe('upstream-queue', upstreamQueue, (pool) => pool.queued)
  observe('upload-queue', upstreamQueue, (pool) => pool.queuedUploads)
  telemetry.observeServers(() =>
    upstreams.inUse.map(({ name, servers }) => ({ upstream: name, states: countServers(servers) })),
  )
  return upstreams
}

class LiveUpstreams implements Upstreams {
  readonly fallback: ResolvedGroup
  /** Whether requests that no route matches go to `upstream:`. */
  #usesFallback = true
  readonly #createGroup: (route: ServedRoute) => ResolvedGroup
  #current: readonly RoutedGroup[] = []
  /** Removed groups, which finish their requests in flight. */
  readonly #retired = new Set<ResolvedGroup>()

  constructor(fallback: ResolvedGroup, createGroup: (route: ServedRoute) => ResolvedGroup) {
    this.fallback = fallback
    this.#createGroup = createGroup
  }

  /** The connections to each server. */
  get pools(): readonly ServerPool[] {
    return [this.fallback, ...this.#current.map(({ group }) => group)]
      .flatMap(({ servers }) => servers)
      .flatMap(({ opened }) => opened ?? [])
  }

  /** The backends that requests can go to. */
  get inUse(): readonly { readonly name: string; readonly servers: readonly Server[] }[] {
    const routed = this.#current.map(({ route, group }) => ({ name: route.name, servers: group.servers }))
    if (!this.#usesFallback && routed.length > 0) return routed
    return [{ name: DEFAULT_UPSTREAM, servers: this.fallback.servers }, ...routed]
  }

  *prepare({
    routes = [],
    hasFallback,
  }: RouteSettings): Steps<{ readonly routed: readonly RoutedGroup[]; readonly commit: () => void }> {
    const known = new Map(this.#current.map((routed) => [routed.route.name, routed]))
    const routed: RoutedGroup[] = []
    for (const route of routes) {
      const running = known.get(route.name)
      const isKept = running !== undefined && isSameGroup(running.route, route)
      routed.push({ route, group: isKept ? running.group : this.#createGroup(route) })
      yield
    }
    return { routed, commit: () => this.#commit(routed, hasFallback) }
  }

  #commit(routed: readonly RoutedGroup[], usesFallback: boolean): void {
    for (const group of this.#retired) if (group.hasEnded) this.#retired.delete(group)
    const before = new Set(this.#current.map(({ group }) => group))
    const kept = new Set(routed.map(({ group }) => group))
    for (const group of before) {
      if (kept.has(group)) continue
      this.#retired.add(group)
      group.retire()
    }
    this.#current = routed
    this.#usesFallback = usesFallback
    // Only backends that requests can go to are probed.
    for (const { route, group } of routed) if (route.health && !before.has(group)) group.start()
  }

  readServers(): ServersReport {
    return reportServers(this.inUse)
  }

  destroy(): void {
    const groups = [this.fallback, ...this.#retired, ...this.#current.map(({ group }) => group)]
    for (const group of groups) group.destroy()
  }
}

function isSameGroup(one: UpstreamRoute, other: UpstreamRoute): boolean {
  const served = (route: UpstreamRoute): ServedRoute & Partial<UpstreamRoute> => {
    return { ...route, hosts: [], paths: [], stripPrefix: true, onlyOver: true, requestHeaders: [] }
  }
  return isDeepStrictEqual(served(one), served(other))
}
