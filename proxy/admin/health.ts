import type { UpstreamState } from '../telemetry/metrics.ts'

/** `embedded`: the counters live in this process. `unknown`: nothing has been asked of the store yet. */
export type StoreState = 'embedded' | 'answering' | 'away' | 'unknown'

/** What `/readyz` says, and what a worker tells its primary process. */
export type HealthReport = {
  readonly status: 'starting' | 'ready' | 'stopping'
  readonly store: StoreState
  readonly upstream: UpstreamState
}

export type Health = {
  /** To be called once clients can connect. */
  markReady(): void
  /** To be called first of all at the end, so that load balancers look elsewhere while requests in flight finish. */
  beginStopping(): void
  read(): HealthReport
}

/**
 * Readiness is this process's own: it is ready from `markReady` to `beginStopping`. The states of the store and of the
 * backend are told but do not change it. Each rule has its own answer to a store that is away; and a gateway that
 * leaves the load balancer because the one backend is away turns a clear 502 into no answer at all, on every replica
 * at the same time. Nothing is probed: asking about health must not be a way to make the gateway work.
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
 * The workers' health as one, for the primary process that answers for them: ready while one of them is, and the store
 * or the backend is away as soon as one worker finds it so.
 *
 * @param own the primary's own status: once it is stopping, no worker's counts
 * @param reports of the workers that answered
 */
export function combineHealth(own: HealthReport['status'], reports: readonly HealthReport[]): HealthReport {
  const oneIsReady = reports.some((report) => report.status === 'ready')
  return {
    status: own === 'stopping' ? 'stopping' : oneIsReady ? 'ready' : 'starting',
    store: firstFound(
      ['away', 'answering', 'embedded'],
      reports.map((report) => report.store),
    ),
    upstream: firstFound(
      ['away', 'answering'],
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
