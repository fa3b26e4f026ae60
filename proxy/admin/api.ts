import type { HealthReport } from './health.ts'

/**
 * Answers with a value that becomes the JSON body of a 200; nothing becomes `null`. One of `errors` becomes that error.
 * `body` is the JSON of the request, for all methods but `GET`.
 */
export type ApiAnswer = (query: URLSearchParams, body: unknown) => unknown

/** Path to method to answer. Paths begin with `/api/`, methods are upper-case; `GET` answers HEAD too. */
export type ApiRoutes = ReadonlyMap<string, Readonly<Partial<Record<string, ApiAnswer>>>>

/** What `GET /api/status` says. */
export type Status = HealthReport & {
  readonly version: string
  /** Whole seconds since the process that answers was started. */
  readonly uptimeSeconds: number
  /** No with `RATE_LIMITING_DISABLED=1`. */
  readonly limitsEnabled: boolean
  /** Rules in the limits table; 0 with limiting switched off. */
  readonly rules: number
  /** Processes that serve clients. */
  readonly workers: number
}

/** The operator's interface. It is made here and served by the admin listener to who may see it. */
export function createApiRoutes(deps: {
  readonly version: string
  readonly limitsEnabled: boolean
  readonly rules: number
  readonly workers: number
  readonly uptimeMs: () => number
  readonly readHealth: () => HealthReport | Promise<HealthReport>
}): ApiRoutes {
  const readStatus = async (): Promise<Status> => ({
    version: deps.version,
    uptimeSeconds: Math.floor(deps.uptimeMs() / 1000),
    limitsEnabled: deps.limitsEnabled,
    rules: deps.rules,
    workers: deps.workers,
    ...(await deps.readHealth()),
  })
  return new Map([['/api/status', { GET: readStatus }]])
}
