import { hostname } from 'node:os'
import type { Log } from '../../../shared/log.ts'
import { withLabels } from '../../admin/client-operations.ts'
import type { Health } from '../../admin/health.ts'
import { ReplicaExchange } from '../../admin/replicas/exchange.ts'
import type { ThrottledClients } from '../../limits/clients/throttled-clients.ts'
import type { Counting } from '../counting.ts'
import { version } from './version.ts'

/** Number of candidates from which a process chooses the clients that it reports to other replicas. */
const REPORTED_FROM = 1_000

/** Composes the exchange of reports with other replicas; undefined without Redis. */
export function composeReplicaExchange(options: {
  readonly counters: Pick<Counting, 'shared' | 'clientTable'>
  readonly throttledClients: Pick<ThrottledClients, 'list'>
  /** Identifies the gateway to which this process belongs. */
  readonly gateway: string
  readonly readTableHash: () => string
  readonly readHealth: Health['read']
  readonly log: Log
}): ReplicaExchange | undefined {
  const { counters, throttledClients, gateway, readTableHash, readHealth, log } = options
  const host = hostname()
  const { shared, clientTable } = counters
  return (
    shared &&
    new ReplicaExchange({
      ...shared,
      gateway,
      readOwn: () => ({
        host,
        version,
        tableHash: readTableHash(),
        status: readHealth().status,
        limited: withLabels(throttledClients.list(undefined, REPORTED_FROM), clientTable.entries),
      }),
      log,
    })
  )
}
