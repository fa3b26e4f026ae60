import { readFileSync } from 'node:fs'
import type { GatewaySettings } from '../../config/settings.ts'

/** The settings for the number of connections. Each connection is an open file. */
type Connections = Pick<GatewaySettings, 'maxConnections' | 'upstreamConnections' | 'upstreamStreams'> &
  Partial<Pick<GatewaySettings, 'routes' | 'hasFallback' | 'decisionsPort'>>

/** Files for everything else: Node's own, logs, certificates, Redis, name lookups. An idle gateway has some 25. */
const OTHER_FILES = 64
const MAX_ADMIN_CONNECTIONS = 256
/** The maximum share of the limit for the admin listener, and the shares of the remaining files for two of the settings. */
const ADMIN_SHARE = 1 / 16
const UPSTREAM_SHARE = 1 / 4
const CLIENTS_SHARE = 3 / 5

/** Returns how many connections the admin listener may have within this limit of open files. */
export function adminConnectionsWithin(limit: number | undefined): number {
  if (limit === undefined) return MAX_ADMIN_CONNECTIONS
  return Math.max(1, Math.min(MAX_ADMIN_CONNECTIONS, Math.floor(limit * ADMIN_SHARE)))
}

/**
 * Lowers the connection limits so that the limit of open files is not reached. Beyond that limit, the system would also refuse connections
 * to the backend and to the admin listener. The limit for clients is lowered last.
 *
 * @param limit undefined if it is unknown or unlimited
 * @returns the settings, and a warning if a limit was lowered
 */
export function fitToOpenFiles<Settings extends Connections>(
  settings: Settings,
  limit: number | undefined,
): { readonly settings: Settings; readonly warnings: readonly string[] } {
  const { maxConnections, upstreamConnections, upstreamStreams, decisionsPort } = settings
  // The decisions listener may have as many connections as the clients' listener.
  const listeners = decisionsPort === undefined ? 1 : 2
  const servers = countServers(settings)
  const reserve = OTHER_FILES + adminConnectionsWithin(limit)
  const ofSettings = maxConnections * listeners + (upstreamConnections + upstreamStreams) * servers
  if (limit === undefined || reserve + ofSettings <= limit) return { settings, warnings: [] }
  const left = limit - reserve
  const upstream = lower(upstreamConnections, (left * UPSTREAM_SHARE) / servers)
  const clients = lower(maxConnections, ((left - upstream * servers) * CLIENTS_SHARE) / listeners)
  const leftForStreams = Math.floor((left - upstream * servers - clients * listeners) / servers)
  const streams = Math.max(0, Math.min(upstreamStreams, leftForStreams))
  // With a higher limit, the admin listener may have more connections, too.
  const needed = OTHER_FILES + MAX_ADMIN_CONNECTIONS + ofSettings
  const text =
    `the limit of open files is ${limit} (ulimit -n) and the settings can need ${needed}${servers === 1 ? '' : ` for ${servers} servers`}: ` +
    `using MAX_CONNECTIONS=${clients}, UPSTREAM_CONNECTIONS=${upstream}, UPSTREAM_STREAMS=${streams}. ` +
    "Raise the limit (ulimit -n, systemd's LimitNOFILE, docker run --ulimit nofile=…) or lower these settings"
  const lowered = { maxConnections: clients, upstreamConnections: upstream, upstreamStreams: streams }
  // Hardly any gateway needs that many streams, so slightly fewer are not worth a warning at each start.
  const isMuch = clients < maxConnections || upstream < upstreamConnections || streams < upstreamStreams / 2
  return { settings: { ...settings, ...lowered }, warnings: isMuch ? [text] : [] }
}

/**
 * Counts the servers of all backends, because the settings apply to each server. A name counts as one server: whether it has several
 * addresses is only known later.
 */
function countServers({ routes, hasFallback }: Connections): number {
  if (!routes) return 1
  const own = routes.reduce((sum, { upstream }) => sum + upstream.length, 0)
  return Math.max(1, own + (hasFallback ? 1 : 0))
}

function lower(wanted: number, max: number): number {
  return Math.max(1, Math.min(wanted, Math.floor(max)))
}

/**
 * Returns how many files this process may have open. Node raises the soft limit to the hard limit at its start.
 *
 * @param file the file with the limits of this process on Linux
 * @returns undefined if there is no limit, or it cannot be read
 */
export function readOpenFilesLimit(file = '/proc/self/limits'): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+) /m.exec(readFileSync(file, 'utf8')) ?? []
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return readLimitFromReport()
  }
}

/** Used without /proc. A report contains much more, and takes milliseconds. */
function readLimitFromReport(): number | undefined {
  const { report } = process
  // Otherwise the report looks up the host names of all connected peers.
  Object.assign(report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } }
  const soft = userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : undefined
}
