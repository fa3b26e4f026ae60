import type { Policy } from '../../proxy/policy.ts'
import type { Loss, Trouble } from './history.ts'

/** One request under a rule that reserves, as its sender saw it. */
export type SettledAttempt = {
  readonly replica: number
  readonly sentMs: number
  readonly answeredMs: number
  readonly outcome: 'allowed' | 'refused' | 'unavailable'
  readonly units: number
  /** What it came to, where it was settled. */
  readonly cost: number
  /** When it was settled; Infinity where it never was, as its gateway has died. */
  readonly settledMs: number
}

/** What happened to one client under one rule, all in one window, with no counters but those of the store. */
export type SettledHistory = {
  readonly policy: Policy
  readonly attempts: readonly SettledAttempt[]
  readonly troubles: readonly Trouble[]
  readonly losses: readonly Loss[]
  /** What the store says is in use in the end. */
  readonly used: number
}

/**
 * Holds a history against two promises: never is more than the quota reserved and settled together, except for what a
 * request turned out to cost beyond its reservation; and the final counts are the costs of the requests, if nothing has failed,
 * and between the certain and the possible costs, if something has.
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
      // Settling takes effect at some time after it was asked for.
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
