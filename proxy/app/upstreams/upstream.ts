import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../shared/log.ts'
import type { Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Names } from '../../names/names.ts'
import type { UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import { DEFAULT_UPSTREAM } from '../../telemetry/metrics/upstream-counters.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { connectionOpener } from '../../http/upstream/open-connection.ts'
import type { ServerPool } from '../../http/upstream/exchange.ts'
import { NegotiatedPool } from '../../http/upstream/http2/negotiated-pool.ts'
import { Http2Pool } from '../../http/upstream/http2/pool.ts'
import { UpstreamPool, type PoolOptions } from '../../http/upstream/pool.ts'
import { serverAddresses } from '../../http/upstream/servers/addresses.ts'
import { createLeastConnections, createRoundRobin } from '../../http/upstream/servers/balancer.ts'
import { createProbe } from '../../http/upstream/servers/probe.ts'
import {
  countServers,
  describeServer,
  reportServers,
  type ServersReport,
} from '../../http/upstream/servers/report.ts'
import { ResolvedGroup } from '../../http/upstream/servers/resolved-group.ts'
import type { OnServerState, Server, ServerPlace } from '../../http/upstream/servers/server.ts'

/** A route with the group of servers for its requests. */
export type RoutedGroup = { readonly route: UpstreamRoute; readonly group: ResolvedGroup }

/** The connections to all backends. */
export type Upstreams = {
  /** `upstream:`. */
  readonly fallback: ResolvedGroup
  /**
   * Makes what other routes need. Routes that have not changed keep their connections.
   *
   * @returns `commit` puts them in force: removed backends finish their requests in flight
   */
  prepare(routes: readonly UpstreamRoute[]): Steps<{
    readonly routed: readonly RoutedGroup[]
    readonly commit: () => void
  }>
  /** The servers of all backends that requests can go to. */
  readServers(): ServersReport
  /** Ends all connections now. */
  destroy(): void
}

export function composeUpstreams(
  settings: GatewaySettings,
  telemetry: Telemetry,
  { names, log, now }: { readonly names: Names; readonly log: Log; readonly now: () => number },
): Upstreams {
  const { upstreamUrl, upstreamCaFile, upstreamConnections, upstreamQueue, upstreamStreams } = settings
  const authorities = upstreamCaFile === undefined ? undefined : readFileSync(upstreamCaFile)
  const createGroup = (route: ServedRoute): ResolvedGroup => {
    const { name, upstream, balance, health, upstreamHost: host } = route
    const trusted = route.authorities === undefined ? authorities : Buffer.from(route.authorities)
    const opener = (
      { url, address }: ServerPlace,
      protocols?: readonly string[],
    ): ReturnType<typeof connectionOpener> =>
      connectionOpener(url, { authorities: trusted, address, lookup: names.lookup, protocols })
    const probed = health && telemetry.ofUpstream(name)
    return new ResolvedGroup({
      urls: upstream.map((url) => new URL(url)),
      pick: balance === 'round-robin' ? createRoundRobin() : createLeastConnections(Math.random),
      lookUp: async (hostname) => {
        const { addresses, forMs } = await names.resolve(hostname)
        return { addresses: serverAddresses(addresses), forMs }
      },
      open: (place) =>
        createPool(settings, place.url, { opener: (protocols) => opener(place, protocols), now }),
      health: health && {
        ...health,
        probe: createProbe({ path: health.path, host }, (place) => opener(place, ['h2', 'http/1.1'])),
        onProbed: (hasPassed) => probed?.upstreamProbed(hasPassed),
        random: Math.random,
      },
      onState: createServerLog(log, name),
      now,
    })
  }
  const fallback = createGroup({
    name: DEFAULT_UPSTREAM,
    upstream: [upstreamUrl.href],
    balance: 'least-connections',
  })
  fallback.start()
  let inForce: readonly RoutedGroup[] = []
  /** Groups that finish what they have. */
  const retired = new Set<ResolvedGroup>()
  const pools = (): readonly ServerPool[] =>
    [fallback, ...inForce.map(({ group }) => group)]
      .flatMap(({ servers }) => servers)
      .flatMap(({ opened }) => opened ?? [])
  const observe = (name: string, capacity: number, size: (pool: ServerPool) => number): void =>
    telemetry.observeTable(name, () => ({
      size: pools().reduce((sum, pool) => sum + size(pool), 0),
      capacity: capacity * Math.max(1, pools().length),
      evictions: 0,
    }))
  observe('upstream-connections', upstreamConnections, (pool) => pool.size)
  observe('upstream-streams', upstreamStreams, (pool) => pool.streams)
  observe('upstream-queue', upstreamQueue, (pool) => pool.queued)
  observe('upload-queue', upstreamQueue, (pool) => pool.queuedUploads)
  const inUse = (): readonly { readonly name: string; readonly servers: readonly Server[] }[] => [
    ...(settings.hasFallback || inForce.length === 0
      ? [{ name: DEFAULT_UPSTREAM, servers: fallback.servers }]
      : []),
    ...inForce.map(({ route, group }) => ({ name: route.name, servers: group.servers })),
  ]
  telemetry.observeServers(() =>
    inUse().map(({ name, servers }) => ({ upstream: name, states: countServers(servers) })),
  )

  return {
    fallback,
    *prepare(routes) {
      const known = new Map(inForce.map((routed) => [routed.route.name, routed]))
      const routed: RoutedGroup[] = []
      for (const route of routes) {
        const running = known.get(route.name)
        const isKept = running !== undefined && isSameGroup(running.route, route)
        routed.push({ route, group: isKept ? running.group : createGroup(route) })
        yield
      }
      return {
        routed,
        commit() {
          for (const group of retired) if (group.isOver) retired.delete(group)
          const before = new Set(inForce.map(({ group }) => group))
          const kept = new Set(routed.map(({ group }) => group))
          for (const { group } of inForce) {
            if (kept.has(group)) continue
            retired.add(group)
            group.retire()
          }
          inForce = routed
          // Nothing is probed that no request could go to.
          for (const { route, group } of routed) if (route.health && !before.has(group)) group.start()
        },
      }
    },
    readServers: () => reportServers(inUse()),
    destroy() {
      for (const group of [fallback, ...retired, ...inForce.map(({ group }) => group)]) group.destroy()
    },
  }
}

/** The parts of a route that its connections depend on: not the requests that it matches. */
type ServedRoute = Omit<UpstreamRoute, 'hosts' | 'paths' | 'stripPrefix' | 'onlyOver' | 'requestHeaders'>

function isSameGroup(one: UpstreamRoute, other: UpstreamRoute): boolean {
  const served = (route: UpstreamRoute): ServedRoute & Partial<UpstreamRoute> => {
    return { ...route, hosts: [], paths: [], stripPrefix: true, onlyOver: true, requestHeaders: [] }
  }
  return isDeepStrictEqual(served(one), served(other))
}

/** Logs when a server goes out of use, and when it comes back. */
function createServerLog(log: Log, upstream: string): OnServerState {
  return (server, reason) => {
    const { state, url, ...where } = describeServer(upstream, server)
    const about = { ...where, server: url, reason }
    if (state === 'available') log.info(about, 'server is available again')
    else log.warn(about, `server is ${state}: it gets requests only while no other server is available`)
  }
}

/** Opens a connection to a server, offering these protocols where it is by TLS. */
type Opener = (protocols?: readonly string[]) => ReturnType<typeof connectionOpener>

/** The connections to one server: HTTP/1.1, HTTP/2 with `h2c:`, or with TLS what the server chooses. */
function createPool(
  settings: GatewaySettings,
  { protocol }: URL,
  { opener, now }: { readonly opener: Opener; readonly now: () => number },
): ServerPool {
  const options = {
    connectMs: settings.upstreamConnectTimeoutMs,
    firstByteMs: settings.upstreamTimeoutMs,
    idleMs: settings.upstreamIdleTimeoutMs,
    maxConnections: settings.upstreamConnections,
    maxQueued: settings.upstreamQueue,
    queueMs: settings.upstreamConnectTimeoutMs,
    maxAgeMs: settings.upstreamMaxAgeMs,
    maxRequests: settings.upstreamMaxRequests,
    now,
    random: Math.random,
  }
  const createHttp1 = (open: PoolOptions['open']): UpstreamPool =>
    new UpstreamPool({
      ...options,
      open,
      maxStreams: settings.upstreamStreams,
    })
  if (protocol === 'http:') return createHttp1(opener())
  if (protocol === 'h2c:') return new Http2Pool({ ...options, open: opener(), scheme: 'http' })
  return new NegotiatedPool(
    (onError) => {
      const open = opener()
      return createHttp1((ready) => open(ready).once('error', onError))
    },
    { ...options, open: opener(['h2', 'http/1.1']), scheme: 'https' },
  )
}
