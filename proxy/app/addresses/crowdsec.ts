import type { Log } from '../../../shared/log.ts'
import { DecisionTable, type DecisionChange } from '../../limits/clients/crowdsec/decision-table.ts'
import { DecisionPoller } from '../../limits/clients/crowdsec/decision-poller.ts'
import type { CrowdsecSettings } from '../../limits/clients/crowdsec/local-api.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { now } from '../counting.ts'
import { version } from '../observe/version.ts'

/** The decisions of CrowdSec in this process. */
export type Crowdsec = {
  readonly table: DecisionTable
  /** Resolves once all decisions have been read or the first read has failed, after `limitMs` at the latest. */
  ready(limitMs: number): Promise<void>
  close(): void
}

/** @param changed called with each change, for processes that keep copies of the decisions */
export function composeCrowdsec(
  settings: CrowdsecSettings,
  options: {
    readonly telemetry: Telemetry
    readonly log: Log
    readonly changed?: (change: DecisionChange) => void
  },
): Crowdsec {
  const { telemetry, log, changed } = options
  const table = new DecisionTable(now)
  const poller = new DecisionPoller(settings, {
    apply(change) {
      table.apply(change)
      changed?.(change)
    },
    telemetry,
    userAgent: `sluice/${version}`,
    log,
    now,
  })
  return { table, ready: (limitMs) => poller.ready(limitMs), close: () => poller.close() }
}
