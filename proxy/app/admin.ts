import type { AddressInfo } from 'node:net'
import { answerNodeErrors } from '../../shared/node-http-errors.ts'
import { createServer } from '../../shared/node-http.ts'
import type { Log } from '../../shared/log.ts'
import type { Running } from '../../shared/shutdown.ts'
import { createClientRoutes } from '../admin/api/api-clients.ts'
import { createBanRoutes } from '../admin/api/api-bans.ts'
import { createExplainRoutes } from '../admin/api/api-explain.ts'
import { createOverrideRoutes } from '../admin/api/api-overrides.ts'
import { createPlanRoutes } from '../admin/api/api-plans.ts'
import { createReloadRoutes } from '../admin/api/api-reload.ts'
import { createApiRoutes, type ApiAnswer, type ApiRoutes } from '../admin/api/api.ts'
import type { ClientOperations } from '../admin/client-operations.ts'
import { limitConnections } from '../admin/connections.ts'
import { adminServerOptions, createAdminHandler, type AdminDeps } from '../admin/server.ts'
import { History } from '../admin/page/history.ts'
import { LiveEvents } from '../admin/page/live-events.ts'
import { readLiveStatus, type ReadActivities } from '../admin/page/live-status.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { createAddressReader } from '../request/addresses/client-address.ts'
import type { ConfigState } from '../telemetry/metrics/metrics.ts'
import { renderMetrics } from '../telemetry/metrics/prometheus.ts'
import { adminConnectionsWithin, readOpenFilesLimit } from './observe/open-files.ts'
import type { Reloader } from './reload/reloader.ts'
import { listenOn } from './listen/server.ts'
import { currentRules } from './serving/current-rules.ts'
import type { Serving } from './serving/serving.ts'
import { version } from './observe/version.ts'

/** The listener for operators and their tools, separate from the clients' listener. */
export type Admin = Running & {
  /** Resolves with the port. */
  listen(): Promise<number>
  /** Call this when another table of limits takes effect. */
  tableChanged(): void
}

/** The parts of a gateway that the admin listener reads and operates. */
type Operated = Pick<AdminDeps, 'readHealth' | 'readMetrics'> & {
  readonly clients: ClientOperations
  readonly reloader: Reloader
  readonly readActivities: ReadActivities
}

/** What the admin listener reads of a gateway that is one process. */
export function operatedAlone({
  clients,
  health,
  metrics,
}: Pick<Serving, 'clients' | 'health' | 'metrics'>): Omit<Operated, 'reloader'> {
  return {
    clients,
    readHealth: () => health.report(),
    readActivities: () => Promise.resolve({ all: [metrics.readActivity()], answered: 1 }),
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot()]),
  }
}

const adminSettings = { host: 'ADMIN_HOST', port: 'ADMIN_PORT' }

/** Composes the listener of `ADMIN_PORT`: the page, the API and the metrics. It does not listen yet. */
export function composeAdmin(settings: GatewaySettings, log: Log, state: Operated): Admin {
  const { adminHost: host, adminPort: port, adminToken: token } = settings
  let active = composeRoutes(settings, state)
  const apiRoutes: ApiRoutes = new Map(
    Array.from(active, ([path, route]) => [
      path,
      Object.fromEntries(
        Object.keys(route).map((method): [string, ApiAnswer] => [
          method,
          (query, body) => active.get(path)?.[method]?.(query, body),
        ]),
      ),
    ]),
  )
  const { readActivities, reloader } = state
  const readConfig = (): ConfigState => reloader.readConfig()
  const history = new History(async () => (await readActivities()).all, Date.now, log)
  const liveEvents = new LiveEvents({
    readStatus: () => readLiveStatus({ answers: () => active, readActivities, readConfig }),
    async readHistory() {
      await history.sample()
      return history.read()
    },
    log,
  })
  const handler = createAdminHandler({ ...state, token, apiRoutes, liveEvents, log })
  const server = createServer(adminServerOptions, handler)
  answerNodeErrors(server, 'GET, HEAD, POST')
  limitConnections(server, adminConnectionsWithin(readOpenFilesLimit()))
  let opening: Promise<AddressInfo> | undefined
  return {
    tableChanged: () => void (active = composeRoutes(state.reloader.current(), state)),
    listen: async () => {
      opening = listenOn(server, { host, port, exclusive: true }, adminSettings)
      return (await opening).port
    },
    async close() {
      history.close()
      // Wait until the server listens: one that is closed before that emits no event.
      await opening?.catch(() => undefined)
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

/** Composes the routes of a table. All tables have the same paths and methods. */
function composeRoutes(settings: GatewaySettings, { clients, reloader, readHealth }: Operated): ApiRoutes {
  const limitsEnabled = !settings.rateLimitingDisabled
  const rules = currentRules(settings)
  const addresses = createAddressReader([], { ipv6Prefix: settings.ipv6Prefix })
  const policies = rules.map(({ policy }) => policy)
  return new Map([
    ...createApiRoutes({
      version,
      limitsEnabled,
      rules: rules.length,
      readConfig: () => reloader.readConfig(),
      workers: settings.workers,
      uptimeMs: () => process.uptime() * 1000,
      readHealth,
    }),
    ...createClientRoutes({ limitsEnabled, rules, addresses, clients }),
    ...createBanRoutes({ policies, addresses, entries: clients.entries }),
    ...createOverrideRoutes({ policies, addresses, entries: clients.entries }),
    ...createPlanRoutes({ policies, addresses, plans: clients.plans }),
    ...createExplainRoutes({ rules, upstreamHost: settings.upstreamUrl.host, clients }),
    ...createReloadRoutes(() => reloader.reload('api')),
  ])
}
