import type { UpstreamState } from '../telemetry/metrics.ts'

/** `memory`: the counters are in this process. `unknown`: no worker has reported yet. */
export type StoreState = 'memory' | 'available' | 'unavailable' | 'unknown'

/** The body of `/readyz`, and what a worker reports to its primary process. */
export type HealthReport = {
  readonly status: 'starting' | 'ready' | 'stopping'
  readonly store: StoreState
  readonly upstream: UpstreamState
}

export type Health = {
  /** Call once clients can connect. */
  markReady(): void
  /** Call first at shutdown, so that load balancers use other gateways while requests in flight finish. */
  beginStopping(): void
  read(): HealthReport
}

/**
 * A process is ready from `markReady` to `beginStopping`. The states of the store and of the backend are reported but do
 * not change readiness: each rule says what to do without the store, and if an outage of the only backend made gateways
 * unready, clients would get no response at all instead of a 502, from all replicas at once. Nothing is probed, so that
 * health checks cause no work.
 */
export function createHealth(states: {
  readonly storeState: () => StoreState
  readonly upstreamState: () => UpstreamState
}): Health {
  let status: HealthReport['status'] = 'starting'
  return {
    markReady() {
      if (status === 'starting') status = 'ready'
    },
    beginStopping() {
      status = 'stopping'
    },
    read: () => ({ status, store: states.storeState(), upstream: states.upstreamState() }),
  }
}

/**
 * Combines the workers' health, for the primary process: ready while one worker is; the store or the backend is
 * unavailable if it is for any worker.
 *
 * @param own the primary's own status: once it is stopping, the workers' statuses are ignored
 * @param reports of the workers that answered
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
  }
}

function firstFound<State extends string>(
  order: readonly State[],
  found: readonly (State | 'unknown')[],
): State | 'unknown' {
  return order.find((state) => found.includes(state)) ?? 'unknown'
}
