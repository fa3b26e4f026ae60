import type { Log } from '../../../../../shared/log.ts'
import { reasonOf } from '../errors.ts'
import type { ClusterProblems } from './cluster.ts'

/** More in one outage than there are kinds of failures: then the reasons hold something that changes each time. */
const MAX_REASONS = 20

export type ProblemLog = ClusterProblems & {
  readonly solved: () => void
  readonly tellOfReplica: (reason: string) => void
}

/** One line for each new reason why there is no connection, up to 20 in an outage, and one when there is. */
export function createProblemLog(redis: string, log: Pick<Log, 'info' | 'warn'>): ProblemLog {
  /** By reason, the node that it was first seen at; undefined without a cluster. */
  const told = new Map<string, string | undefined>()
  function tell(reason: string, message: string, node?: string): void {
    if (told.has(reason) || told.size === MAX_REASONS) return
    told.set(reason, node)
    log.warn({ redis, ...(node && { node }), reason }, message)
  }
  return {
    tell(problem, node) {
      tell(reasonOf(problem), 'cannot connect to Redis; retrying', node)
    },
    tellOfReplica: (reason) =>
      tell(reasonOf(reason), 'connected to a replica of Redis; looking for the master'),
    solvedAt(node) {
      for (const [reason, at] of told) if (at === node) told.delete(reason)
    },
    solved() {
      told.clear()
      log.info({ redis }, 'connected to Redis')
    },
  }
}
