import { sumActivities, type Activities } from '../../telemetry/metrics/activity.ts'
import type { ConfigState } from '../../telemetry/metrics/metrics.ts'
import type { ApiPath, ApiRoutes } from '../api/api.ts'

const SHOWN = 100

/** Reads the activities of the processes that serve clients. */
export type ReadActivities = () => Promise<Activities>

/**
 * Reads the data of an event of `GET /api/events`: the replies of the API that the page shows, and the counts since the processes were
 * started, from which the page computes rates.
 *
 * @param answers returns the routes of the current table
 */
export async function readLiveStatus(options: {
  readonly answers: () => ApiRoutes
  readonly readActivities: ReadActivities
  readonly readConfig: () => ConfigState
}): Promise<object> {
  const { answers, readActivities, readConfig } = options
  const query = new URLSearchParams({ limit: String(SHOWN) })
  const get = (path: ApiPath): unknown => answers().get(path)?.['GET']?.(query, undefined)
  const [status, limited, bans, overrides, replicas, activities] = await Promise.all([
    get('/api/status'),
    get('/api/clients/limited'),
    get('/api/bans'),
    get('/api/overrides'),
    get('/api/replicas'),
    readActivities(),
  ])
  const { decisions, requests, connections, breakerOpen } = sumActivities(activities.all)
  const { lastReadSucceeded, lastSuccessAtMs, mistakes = [] } = readConfig()
  // Most of thousands of rules have counted nothing.
  const counted = decisions.filter(([, outcomes]) => Object.values(outcomes).some((count) => count > 0))
  return {
    at: Date.now(),
    status,
    workersAnswering: activities.answered,
    breakerOpen,
    connections,
    requests,
    config: { lastReadSucceeded, lastSuccessAt: lastSuccessAtMs, mistakes: mistakes.slice(0, SHOWN) },
    decisions: counted,
    limited,
    bans,
    overrides,
    replicas,
  }
}
