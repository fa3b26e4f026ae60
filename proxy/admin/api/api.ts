import type { ConfigState } from '../../telemetry/metrics/metrics.ts'
import type { HealthReport } from '../health.ts'
import type { apiOperations } from './description/operations.ts'

/**
 * Answers a request. The returned value becomes the JSON body of a 200; undefined becomes `null`; one of `errors` becomes that error.
 * `body` is the JSON of the request, for all methods except `GET`.
 */
export type ApiAnswer = (query: URLSearchParams, body: unknown) => unknown

/** Maps methods to answers. Methods are upper-case; `GET` also answers HEAD. */
export type ApiRoute = Readonly<Partial<Record<string, ApiAnswer>>>

/** A path of the API: one that `/api/openapi.json` describes. */
export type ApiPath = keyof typeof apiOperations

export type ApiRoutes = ReadonlyMap<ApiPath, ApiRoute>

/** The reply of `GET /api/status`. */
export type Status = HealthReport & {
  readonly version: string
  /** Whole seconds since the process that answers was started. */
  readonly uptimeSeconds: number
  /** False with `RATE_LIMITING_DISABLED=1`. */
  readonly limitsEnabled: boolean
  /** Number of rules in the limits table; 0 if rate limiting is disabled. */
  readonly rules: number
  /** A short SHA-256 of the table of limits, equal on all replicas with the same table. */
  readonly tableHash: string
  /** False if the settings were invalid or could not be applied when they were last read, so that the previous table stays in effect. */
  readonly lastReloadSuccessful: boolean
  /** Number of processes that serve clients. */
  readonly workers: number
}

/** The operator's interface. The admin listener serves it to clients with access. */
export function createApiRoutes(deps: {
  readonly version: string
  readonly limitsEnabled: boolean
  readonly rules: number
  readonly readConfig: () => Pick<ConfigState, 'hash' | 'lastReadSucceeded'>
  readonly workers: number
  readonly uptimeMs: () => number
  readonly readHealth: () => HealthReport | Promise<HealthReport>
}): ApiRoutes {
  const readStatus = async (): Promise<Status> => ({
    version: deps.version,
    uptimeSeconds: Math.floor(deps.uptimeMs() / 1000),
    limitsEnabled: deps.limitsEnabled,
    rules: deps.rules,
    tableHash: deps.readConfig().hash,
    lastReloadSuccessful: deps.readConfig().lastReadSucceeded,
    workers: deps.workers,
    ...(await deps.readHealth()),
  })
  return new Map<ApiPath, ApiRoute>([
    ['/api/status', { GET: readStatus }],
    ['/api/openapi.json', { GET: () => describe(deps.version) }],
  ])
}

/** Loads the schemas of replies on request, because nothing else uses them. */
async function describe(version: string): Promise<object> {
  const { describeApi } = await import('./description/document.ts')
  return describeApi(version)
}
