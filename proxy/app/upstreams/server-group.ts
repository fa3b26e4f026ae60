import type { Log } from '../../../shared/log.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Names } from '../../names/names.ts'
import type { UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { connectionOpener } from '../../http/upstream/open-connection.ts'
import type { ServerPool } from '../../http/upstream/servers/server-pool.ts'
import { NegotiatedPool } from '../../http/upstream/http2/negotiated-pool.ts'
import { Http2Pool } from '../../http/upstream/http2/pool.ts'
import { UpstreamPool, type PoolOptions } from '../../http/upstream/pool.ts'
import { createLeastConnections, createRoundRobin } from '../../http/upstream/servers/balancer.ts'
import { createProbe } from '../../http/upstream/servers/probe.ts'
import { describeServer } from '../../http/upstream/servers/report.ts'
import { ResolvedGroup } from '../../http/upstream/servers/resolved-group.ts'
import type { OnServerState, ServerPlace } from '../../http/upstream/servers/server.ts'
import { createServerLookUp } from './server-lookup.ts'

/** The parts of a route on which its connections depend. They do not include the requests that it matches. */
export type ServedRoute = Omit<
  UpstreamRoute,
  'hosts' | 'paths' | 'stripPrefix' | 'onlyOver' | 'requestHeaders'
>

export type GroupOptions = {
  readonly telemetry: Telemetry
  readonly names: Names
  readonly log: Log
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Returns a function that creates the group of servers of a route. The group opens no connection before a request or `start`. */
export function createGroupFactory(
  settings: GatewaySettings,
  { telemetry, names, log, now }: GroupOptions,
): (route: ServedRoute) => ResolvedGroup {
  const { upstreamCaFile } = settings
  const authorities = upstreamCaFile === undefined ? undefined : readRegularFileSync(upstreamCaFile)
  return (route) => {
    const { name, upstream, balance, health, upstreamHost: host } = route
    const trusted = route.authorities === undefined ? authorities : Buffer.from(route.authorities)
    const openerTo =
      ({ url, address }: ServerPlace): Opener =>
      (protocols) =>
        connectionOpener(url, { authorities: trusted, address, lookup: names.lookup, protocols })
    const probed = health && telemetry.ofUpstream(name)
    return new ResolvedGroup({
      urls: upstream.map((url) => new URL(url)),
      pick: balance === 'round-robin' ? createRoundRobin() : createLeastConnections(Math.random),
      lookUp: createServerLookUp(names),
      open: (place) => createPool(settings, place.url, { opener: openerTo(place), now }),
      health: health && {
        ...health,
        probe: createProbe({ path: health.path, host }, (place) => openerTo(place)(['h2', 'http/1.1'])),
        onProbed: (hasPassed) => probed?.upstreamProbed(hasPassed),
        random: Math.random,
      },
      onState: createServerLog(log, name),
      now,
    })
  }
}

/** Logs when a server becomes unavailable, and when it is available again. */
function createServerLog(log: Log, upstream: string): OnServerState {
  return (server, reason) => {
    const { state, url, ...where } = describeServer(upstream, server)
    const about = { ...where, server: url, reason }
    if (state === 'available') log.info(about, 'server is available again')
    else log.warn(about, `server is ${state}: it gets requests only while no other server is available`)
  }
}

/** Opens a connection to a server. With TLS, it offers these protocols. */
type Opener = (protocols?: readonly string[]) => ReturnType<typeof connectionOpener>

/** Creates the pool of connections to one server: HTTP/1.1; HTTP/2 with `h2c:`; or, with TLS, the protocol that the server chooses. */
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
    maxStreams: settings.upstreamStreams,
    maxQueued: settings.upstreamQueue,
    queueMs: settings.upstreamConnectTimeoutMs,
    maxAgeMs: settings.upstreamMaxAgeMs,
    maxRequests: settings.upstreamMaxRequests,
    now,
    random: Math.random,
  }
  const createHttp1 = (open: PoolOptions['open']): UpstreamPool => new UpstreamPool({ ...options, open })
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
