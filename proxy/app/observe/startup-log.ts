import { hashTable } from '../../config/reload/table-hash.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { describeRedis, parseRedisUrl } from '../../limits/store/redis/connecting/url.ts'
import type { Listening } from '../serving/serving.ts'

/** The `listening` log line, which shows operators whether the right gateway was started. */
export type ListeningLine = Listening & {
  /** The address that clients connect to, `*` for all interfaces. */
  readonly address: string
  /** The backend of requests that no route matches; undefined if such requests get 404. */
  readonly upstream?: string
  /** The number of routes in the table, if there is one. */
  readonly routes?: number
  /** The source of the limits: a path, or a description. */
  readonly limits: string
  /** Number of current rules. */
  readonly rules: number
  /** The hash of the table of limits, as in `/api/status`. */
  readonly tableHash: string
  /** `memory`, or the address of Redis without user and password. */
  readonly store: string
  /** The namespace of the keys in Redis. */
  readonly namespace?: string
}

/** Returns the fields of the log line at the end of the start. For Redis, they name the servers, without the login. */
export function describeStart(
  settings: GatewaySettings,
  { port, adminPort, decisionsPort }: Listening,
): ListeningLine {
  const { host = '*', tlsCertFile, upstreamUrl, routes, hasFallback } = settings
  const { redisUrl, namespace, rules, rateLimitingDisabled } = settings
  const scheme = tlsCertFile === undefined ? 'http' : 'https'
  return {
    address: `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    adminPort,
    ...(decisionsPort !== undefined && { decisionsPort }),
    ...((hasFallback || !routes) && { upstream: upstreamUrl.href.replace(/\/$/, '') }),
    ...(routes && { routes: routes.length }),
    limits: describeLimits(settings),
    rules: rateLimitingDisabled ? 0 : rules.length,
    tableHash: hashTable(settings),
    store: redisUrl === undefined ? 'memory' : describeRedis(parseRedisUrl(redisUrl)),
    ...(namespace !== undefined && redisUrl !== undefined && { namespace }),
  }
}

function describeLimits({ rateLimitingDisabled, limitsFile, configFile }: GatewaySettings): string {
  if (rateLimitingDisabled) return 'switched off'
  if (limitsFile !== undefined) return limitsFile
  return configFile === undefined ? 'built-in table' : `built-in table, because ${configFile} has no limits`
}
