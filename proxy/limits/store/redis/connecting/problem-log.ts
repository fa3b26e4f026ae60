import type { Log } from '../../../../../shared/log.ts'
import { reasonOf } from '../errors.ts'
import type { ClusterProblems } from './cluster.ts'

/**
 * Maximum number of reasons that are logged in one outage. It is more than there are kinds of failures: beyond it, the reasons contain
 * something that changes each time.
 */
const MAX_REASONS = 20

export type ProblemLog = ClusterProblems & {
  readonly solved: () => void
  readonly logReplica: (reason: string) => void
}

/** Logs one line for each new reason why there is no connection, up to 20 in an outage, and one line when there is a connection. */
export function createProblemLog(redis: string, log: Pick<Log, 'info' | 'warn'>): ProblemLog {
  /** By kind of reason, the node that it was first seen at; undefined without a cluster. */
  const logged = new Map<string, string | undefined>()
  function logOnce(reason: string, message: string, node?: string): void {
    const kind = kindOf(reason, node)
    if (logged.has(kind) || logged.size === MAX_REASONS) return
    logged.set(kind, node)
    log.warn({ redis, ...(node && { node }), reason }, message)
  }
  return {
    logProblem(problem, node) {
      logOnce(reasonOf(problem), 'cannot connect to Redis; retrying', node)
    },
    logReplica: (reason) =>
      logOnce(reasonOf(reason), 'connected to a replica of Redis; looking for the master'),
    solvedAt(node) {
      for (const [kind, at] of logged) if (at === node) logged.delete(kind)
    },
    solved() {
      logged.clear()
      log.info({ redis }, 'connected to Redis')
    },
  }
}

/** Returns the reason without the address of the node, because many unavailable nodes of a cluster share one reason. */
function kindOf(reason: string, node: string | undefined): string {
  if (node === undefined) return reason
  const host = node.slice(0, node.lastIndexOf(':'))
  return reason
    .replaceAll(node, '')
    .replaceAll(host, '')
    .replace(/\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?/g, '')
}
