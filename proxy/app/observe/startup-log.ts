import { hashTable } from '../../config/reload/table-hash.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { describeRedis, parseRedisUrl } from '../../limits/store/redis/connecting/url.ts'
import type { Listening } from '../serving/serving.ts'

/** The `listening` log line, which shows operators whether the right gateway was started. */
export type ListeningLine = Listening & {
  /** Where clients connect, `*` standing for all interfaces. */
  readonly address: string
  /** Where requests go that take no route; undefined if these get 404. */
  readonly upstream?: string
  /** Of the table of routes, where there is one. */
  readonly routes?: number
  /** Where the limits are from: a path, or words. */
  readonly limits: string
  /** Number of current rules. */
  readonly rules: number
  /** Of the table of limits, as in `/api/status`. */
  readonly tableHash: string
  /** `memory`, or the address of Redis without user and password. */
  readonly store: string
  /** Of the keys in Redis. */
  readonly namespace?: string
}

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
