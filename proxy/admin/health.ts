import type { UpstreamState } from '../telemetry/metrics/upstream-counters.ts'
import type { ServerCounts, ServerReport, ServersReport } from '../http/upstream/servers/report.ts'

/** `memory`: the counters are in this process. `unknown`: no worker has reported yet. */
export type StoreState = 'memory' | 'available' | 'unavailable' | 'unknown'

/** The body of `/readyz`, and what a worker reports to its primary process. */
export type HealthReport = {
  readonly status: 'starting' | 'ready' | 'stopping'
  readonly store: StoreState
  readonly upstream: UpstreamState
  /** The number of servers of the backends in each state; missing before a worker has reported. */
  readonly servers?: ServerCounts
  /** The nodes of a Redis cluster whose circuit breakers are open, for operators only; missing if there are none. */
  readonly unavailableStoreNodes?: readonly string[]
  /** Some of the servers, for operators only. */
  readonly listedServers?: readonly ServerReport[]
}

export type Health = {
  /** Call once clients can connect. */
  markReady(): void
  /** Call first at shutdown, so that load balancers use other gateways while requests in flight finish. */
  beginStopping(): void
  read(): HealthReport
  /** Reads the health including the servers of the backends, which takes longer if there are many servers. */
  report(): HealthReport
}

/**
 * A process is ready from `markReady` to `beginStopping`. The states of the store and of the backend are reported, but do not change
 * readiness. Each rule says what to do without the store. If an outage of the only backend made gateways unready, all replicas would be
 * unready at once, and clients would get no response at all instead of a 502. A read probes nothing, so health checks cause no work.
 */
export function createHealth(states: {
  readonly storeState: () => StoreState
  readonly upstreamState: () => UpstreamState
  readonly unavailableStoreNodes?: (() => readonly string[]) | undefined
  readonly readServers?: () => ServersReport
}): Health {
  let status: HealthReport['status'] = 'starting'
  const read = (): HealthReport => ({
    status,
    store: states.storeState(),
    upstream: states.upstreamState(),
  })
  return {
    markReady() {
      if (status === 'starting') status = 'ready'
    },
    beginStopping() {
      status = 'stopping'
    },
    read,
    report() {
      const servers = states.readServers?.()
      return {
        ...read(),
        ...nodesIfAny(states.unavailableStoreNodes?.() ?? []),
        ...(servers && { servers: servers.counts, listedServers: servers.listed }),
      }
    },
  }
}

/**
 * Combines the health of the workers, for the primary process. The gateway is ready while one worker is ready. The store, the backend or a
 * node of Redis is unavailable if any worker reports it as unavailable. The servers are those in the report of the worker with the most
 * servers out of use.
 *
 * @param own the status of the primary process; once it is stopping, the workers' statuses are ignored
 * @param reports reports of the workers that answered
 */
export function combineHealth(own: HealthReport['status'], reports: readonly HealthReport[]): HealthReport {
  const oneIsReady = reports.some((report) => report.status === 'ready')
  return {
    status: own === 'stopping' ? 'stopping' : oneIsReady ? 'ready' : 'starting',
    store: firstFound(
      ['unavailable', 'available', 'memory'],
      reports.map((report) => report.store),
    ),
    upstream: firstFound(
      ['unavailable', 'available'],
      reports.map((report) => report.upstream),
    ),
    ...nodesIfAny(reports.flatMap(({ unavailableStoreNodes = [] }) => unavailableStoreNodes)),
    ...worstServers(reports),
  }
}

function nodesIfAny(names: readonly string[]): Pick<HealthReport, 'unavailableStoreNodes'> {
  return names.length > 0 ? { unavailableStoreNodes: [...new Set(names)].sort() } : {}
}

function worstServers(reports: readonly HealthReport[]): Pick<HealthReport, 'servers' | 'listedServers'> {
  const outOfUse = ({ servers }: HealthReport): number => (servers ? servers.ejected + servers.unhealthy : -1)
  const [first, ...others] = reports
  if (!first) return {}
  const worst = others.reduce((found, each) => (outOfUse(each) > outOfUse(found) ? each : found), first)
  const { servers, listedServers } = worst
  return { ...(servers && { servers }), ...(listedServers && { listedServers }) }
}

function firstFound<State extends string>(
  order: readonly State[],
  found: readonly (State | 'unknown')[],
): State | 'unknown' {
  return order.find((state) => found.includes(state)) ?? 'unknown'
}
