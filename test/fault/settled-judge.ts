import type { Policy } from '../../proxy/policy.ts'
import type { Loss, Trouble } from './history.ts'

/** One request, as its sender saw it, under a rule that reserves. */
export type SettledAttempt = {
  readonly replica: number
  readonly sentMs: number
  readonly answeredMs: number
  readonly outcome: 'allowed' | 'refused' | 'unavailable'
  readonly units: number
  /** The actual cost, if it was settled. */
  readonly cost: number
  /** When it was settled; Infinity if its gateway died first. */
  readonly settledMs: number
}

/** What happened to one client under one rule, within one window, with only the store's counters. */
export type SettledHistory = {
  readonly policy: Policy
  readonly attempts: readonly SettledAttempt[]
  readonly troubles: readonly Trouble[]
  readonly losses: readonly Loss[]
  /** The units in use at the end, as the store reports them. */
  readonly used: number
}

/**
 * Checks a history against two promises. The units reserved and settled never exceed the quota, except for costs beyond a reservation. The
 * final count is the cost of the requests if nothing failed; otherwise it is between the certain and the possible costs.
 *
 * @returns the violations, in words
 */
export function judgeSettled({ policy, attempts, troubles, losses, used }: SettledHistory): string[] {
  const violations: string[] = []
  const lostUntilMs = Math.max(-Infinity, ...losses.map(({ untilMs }) => untilMs))
  const allowed = attempts.filter(({ outcome, sentMs }) => outcome === 'allowed' && sentMs > lostUntilMs)
  const isInFlight = policy.algorithm === 'concurrency'

  for (const attempt of allowed) {
    let inUse = attempt.units
    for (const other of allowed) {
      if (other === attempt || other.answeredMs > attempt.sentMs) continue
      // Settling takes effect some time after it was requested.
      const mayBeSettled = other.settledMs <= attempt.answeredMs
      inUse += mayBeSettled ? (isInFlight ? 0 : Math.min(other.units, other.cost)) : other.units
    }
    if (inUse > policy.quota)
      violations.push(`${inUse} in use at ${attempt.sentMs.toFixed(1)} ms, where ${policy.quota} may be`)
  }
  if (losses.length > 0) return violations

  let least = 0
  let most = 0
  for (const { replica, units, cost, settledMs } of allowed) {
    const isSettled = settledMs < Infinity
    const final = isSettled ? (isInFlight ? 0 : cost) : units
    const isSure = !isSettled || !isTroubled(troubles, replica, settledMs)
    least += isSure ? final : Math.min(units, final)
    most += isSure ? final : Math.max(units, final)
  }
  for (const { replica, outcome, units, sentMs, answeredMs } of attempts)
    if (outcome === 'unavailable' && isTroubled(troubles, replica, sentMs, answeredMs)) most += units
  if (used < least) violations.push(`${used} counted, where at least ${least} are in use`)
  if (used > most) violations.push(`${used} counted, where at most ${most} can be in use`)
  return violations
}

function isTroubled(
  troubles: readonly Trouble[],
  replica: number,
  fromMs: number,
  untilMs = fromMs,
): boolean {
  return troubles.some(
    (trouble) => trouble.replica === replica && trouble.fromMs <= untilMs + 200 && trouble.untilMs >= fromMs,
  )
}
