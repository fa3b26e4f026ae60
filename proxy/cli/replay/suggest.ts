import { describeKey } from '../../admin/api/client-name.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { takesUnits } from '../../limits/algorithms/registry.ts'
import type { Policy } from '../../policy.ts'
import type { ClientRow } from './client-table.ts'
import type { LoggedRequest } from './logs/logged-request.ts'
import type { Simulation } from './simulation/simulation.ts'
import type { Tally } from './simulation/tally.ts'

/** Limits that would have refused at most a share of the clients. */
export type Suggestion = {
  /** The share of each rule's clients, from 0 to 1. */
  readonly share: number
  readonly rules: readonly SuggestedRule[]
}

export type SuggestedRule = {
  readonly name: string
  readonly requests: number
  /** Clients in the part of the log from which the limit is calculated. */
  readonly clients: number
  /** The part of `clients` that requested more in one window. */
  readonly clientsOver: number
  /** At most ten clients: those that requested the most. */
  readonly over: readonly { readonly client: object; readonly peak: number }[]
  /** The effect of the suggested table on the rest of the log. */
  readonly heldOut: {
    readonly requests: number
    readonly refused: number
    readonly clients: number
    readonly clientsRefused: number
  }
}

/** The fraction of the log's time from which limits are calculated. They are tried on the rest. */
export const FITTED_PART = 0.7
const SHARES = [0.001, 0.01]
const MAX_SHOWN = 10

type Fitted = Omit<SuggestedRule, 'heldOut'>

/**
 * For each rule with fixed or sliding windows, suggests the lowest limit that at most a share of its clients has exceeded in the first part
 * of a log. Tries the table with all suggested limits on the rest of the log. Rules whose cost a log does not contain, token buckets, and
 * rules that count requests in flight keep their limits.
 *
 * @param splitMs the time when the second part begins
 * @param start starts a simulation with the settings
 */
export function createSuggester(
  settings: GatewaySettings,
  splitMs: number,
  start: (settings: GatewaySettings) => Simulation,
): { add(request: LoggedRequest): void; finish(): Suggestion[] } {
  let first: Simulation | undefined = start(settings)
  let trials: {
    readonly share: number
    readonly fitted: readonly Fitted[]
    readonly simulation: Simulation
  }[] = []

  function fit(): void {
    const tally = first?.tally
    // Release the first simulation, whose clients take much memory.
    first = undefined
    if (!tally) return
    const rows = sortedRows(tally)
    trials = SHARES.map((share) => {
      const fitted = tally.rules.flatMap(({ policy }, place) => fitRule(policy, rows[place] ?? [], share))
      return { share, fitted, simulation: start(withLimits(settings, fitted)) }
    })
  }

  return {
    add(request) {
      if (first && request.timeMs < splitMs) {
        first.add(request)
        return
      }
      if (first) fit()
      for (const { simulation } of trials) simulation.add(request)
    },
    finish() {
      if (first) fit()
      return trials.map(({ share, fitted, simulation }) => ({
        share,
        rules: tryOn(fitted, simulation.tally),
      }))
    },
  }
}

/**
 * Returns the clients of each rule, those with the highest peak first. Leaves out clients with overrides, which have limits of their own.
 */
function sortedRows({ rules, clients }: Tally): ClientRow[][] {
  const byRule = rules.map((): ClientRow[] => [])
  for (const row of clients.rows()) {
    if (row.quota === rules[row.rule]?.policy.quota) byRule[row.rule]?.push(row)
  }
  return byRule.map((rows) => rows.sort((a, b) => b.peak - a.peak))
}

/** Returns the limit for a rule; empty if there is nothing to suggest. */
function fitRule(policy: Policy, rows: readonly ClientRow[], share: number): Fitted[] {
  // The peak of a client is the quota that it needs only if every request costs one unit.
  if (takesUnits(policy) || rows.length === 0) return []
  const requests = rows[Math.floor(share * rows.length)]?.peak ?? 1
  const over = rows.filter(({ peak }) => peak > requests)
  const shown = over.slice(0, MAX_SHOWN).map(({ key, peak }) => ({ client: describeKey(key), peak }))
  return [{ name: policy.name, requests, clients: rows.length, clientsOver: over.length, over: shown }]
}

function withLimits(settings: GatewaySettings, fitted: readonly Fitted[]): GatewaySettings {
  const limits = new Map(fitted.map(({ name, requests }) => [name, requests]))
  const rules = settings.rules.map((rule) => ({
    ...rule,
    policy: { ...rule.policy, quota: limits.get(rule.policy.name) ?? rule.policy.quota },
  }))
  return { ...settings, rules }
}

function tryOn(fitted: readonly Fitted[], { rules, clients }: Tally): SuggestedRule[] {
  const counts = rules.map(() => ({ clients: 0, clientsRefused: 0 }))
  for (const { rule, refused } of clients.rows()) {
    const count = counts[rule]
    if (!count) continue
    count.clients += 1
    if (refused > 0) count.clientsRefused += 1
  }
  return fitted.map((suggested) => {
    const place = rules.findIndex(({ policy }) => policy.name === suggested.name)
    const { requests = 0, refused = 0 } = rules[place] ?? {}
    return {
      ...suggested,
      heldOut: { requests, refused, ...(counts[place] ?? { clients: 0, clientsRefused: 0 }) },
    }
  })
}
