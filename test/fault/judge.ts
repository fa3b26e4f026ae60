import type { Attempt, History, Loss } from './history.ts'
import { splitWindows } from './windows.ts'

/**
 * Checks a history against the promise of docs/redis.md. The model is a sequential counter: there must be an order of the requests, each at
 * some instant between sent and answered, in which a counter that goes up to the quota gives the same answers. Without troubles the check
 * is exact. With troubles, each clause below says how far the history may deviate.
 *
 * If a window ends within a history that has troubles, the check is loose: it allows the most that any order allows. For exact results, use
 * windows longer than the history.
 *
 * @returns the violations, in words; empty if the promise was kept
 */
export function judge(history: History): string[] {
  const { rule, losses } = history
  const attempts = history.attempts
    .toSorted((a, b) => a.sentMs - b.sentMs)
    .map((attempt) => placeInTime(attempt, history))
  const first = attempts.find(({ outcome }) => outcome === 'allowed')
  const lastMs = Math.max(...attempts.map(({ answeredMs }) => answeredMs))
  const isOneWindow = !first || lastMs - first.sentMs < rule.windowMs
  const violations = attempts.flatMap((attempt) => judgeOutcome(attempt, history))
  if (isOneWindow) {
    violations.push(...judgeWindow(attempts, attempts, history), ...judgeCounted(attempts, history))
  } else if (attempts.some(({ isTroubled }) => isTroubled) || losses.length > 0) {
    violations.push(...judgeSpans(attempts, history))
  } else {
    for (const { sure, possible } of splitWindows(attempts, rule.windowMs)) {
      violations.push(...judgeWindow(sure, possible, history))
    }
  }
  return violations
}

type PlacedAttempt = Attempt & {
  /** Whether it overlaps a trouble of its replica. */
  readonly isTroubled: boolean
  /** Whether the store may have counted it without the replica learning of that. */
  readonly isUncertain: boolean
  /** The time by which the store must have counted it, if it was allowed. */
  readonly landedMs: number
}

function placeInTime(attempt: Attempt, { rule, troubles }: History): PlacedAttempt {
  const { replica, sentMs, answeredMs, outcome, asked } = attempt
  const met = troubles.filter(
    ({ replica: of, fromMs, untilMs }) => of === replica && fromMs <= answeredMs && untilMs >= sentMs,
  )
  const isTroubled = met.length > 0
  // Without local counters only the store allows requests, and it has counted each of them once.
  const isStoreAnswer = outcome === 'allowed' && rule.onStoreError !== 'local'
  return {
    ...attempt,
    isTroubled,
    isUncertain: isTroubled && asked && !isStoreAnswer,
    landedMs: Math.max(answeredMs, ...met.map(({ untilMs }) => untilMs)),
  }
}

/** Checks that the outcome is possible at all under the rule. */
function judgeOutcome(attempt: PlacedAttempt, { rule }: History): string[] {
  const { outcome, isTroubled } = attempt
  const isAway = outcome === 'passed' || outcome === 'unavailable'
  if (!isAway) return []
  const expected = rule.onStoreError === 'open' ? 'passed' : 'unavailable'
  if (rule.onStoreError === 'local' || outcome !== expected) {
    return [`${outcome}, which a rule with onStoreError ${rule.onStoreError} never is: ${tell(attempt)}`]
  }
  return isTroubled ? [] : [`${outcome} without any trouble: ${tell(attempt)}`]
}

/**
 * Judges one window.
 *
 * @param sure the requests that were in the window
 * @param possible the same requests, and those that may have been in this window or in one beside it
 */
function judgeWindow(
  sure: readonly PlacedAttempt[],
  possible: readonly PlacedAttempt[],
  { rule, losses }: History,
): string[] {
  const { quota } = rule
  const violations: string[] = []
  const allowed = sure.filter(({ outcome }) => outcome === 'allowed')
  // The store allows the quota, and as many again as it lost. In addition, each replica in trouble allows the quota.
  const forgotten = losses.map((loss) => Math.min(quota, allowed.filter((one) => isLost(one, [loss])).length))
  const standIns = [...Map.groupBy(allowed, ({ replica }) => replica).values()].map((ofReplica) =>
    rule.onStoreError === 'local'
      ? Math.min(quota, ofReplica.filter(({ isTroubled }) => isTroubled).length)
      : 0,
  )
  const most = quota + sum(forgotten) + sum(standIns)
  if (allowed.length > most) violations.push(`${allowed.length} allowed, where at most ${most} may be`)

  for (const ofReplica of Map.groupBy(allowed, ({ replica }) => replica).values()) {
    const alone = ofReplica.filter(({ asked }) => !asked)
    if (alone.length > quota) violations.push(`${alone.length} allowed by one replica without the store`)
  }

  // If the quota was certainly used up when a request was sent, the store must have refused the request.
  const landed = allowed.filter((one) => !isLost(one, losses)).toSorted((a, b) => a.landedMs - b.landedMs)
  for (const attempt of allowed) {
    if (attempt.isTroubled) continue
    const full = landed[quota - 1]
    if (full && full.landedMs < attempt.sentMs) {
      violations.push(`allowed when the quota was used up: ${tell(attempt)}`)
    }
  }

  // No request may be refused before the quota can have been used up.
  for (const attempt of sure) {
    if (attempt.outcome !== 'refused') continue
    const before = countBefore(possible, attempt)
    if (before < quota) violations.push(`refused after ${before} of ${quota}: ${tell(attempt)}`)
  }

  return violations
}

/** Judges the store's count for a history with a single window. */
function judgeCounted(attempts: readonly PlacedAttempt[], { losses, counted }: History): string[] {
  if (counted === undefined) return []
  const allowed = attempts.filter(({ outcome }) => outcome === 'allowed')
  const landed = allowed.filter((one) => !isLost(one, losses))
  const uncertain = attempts.filter(({ isUncertain }) => isUncertain)
  const told = `${counted} counted, but ${allowed.length} allowed`
  if (counted < landed.length) return [`${told}, of which ${allowed.length - landed.length} may be lost`]
  return counted > allowed.length + uncertain.length ? [`${told}, and ${uncertain.length} uncertain`] : []
}

/** The highest count possible before an answer. A request that was both allowed and uncertain may have been counted twice. */
function countBefore(attempts: readonly PlacedAttempt[], { answeredMs }: Attempt): number {
  const before = attempts.filter(({ sentMs }) => sentMs <= answeredMs)
  const allowed = before.filter(({ outcome }) => outcome === 'allowed')
  return allowed.length + before.filter(({ isUncertain }) => isUncertain).length
}

/** Windows of the store and of the replicas begin independently, so a span as long as a window overlaps up to two of each. */
function judgeSpans(attempts: readonly PlacedAttempt[], { rule, losses }: History): string[] {
  const { quota, windowMs } = rule
  const allowed = attempts.filter(({ outcome }) => outcome === 'allowed')
  const replicas = new Set(allowed.filter(({ isTroubled }) => isTroubled).map(({ replica }) => replica))
  const standIns = rule.onStoreError === 'local' ? replicas.size : 0
  const most = 2 * quota * (1 + losses.length + standIns)
  return allowed.flatMap((first, index) => {
    const within = allowed.slice(index).filter(({ answeredMs }) => answeredMs <= first.sentMs + windowMs)
    return within.length > most ? [`${within.length} allowed in a span with ${most}: ${tell(first)}`] : []
  })
}

/** Whether the store may have lost its count of this request. */
function isLost({ sentMs, landedMs }: PlacedAttempt, losses: readonly Loss[]): boolean {
  return losses.some(({ fromMs, untilMs }) => sentMs < untilMs && landedMs > fromMs)
}

function tell({ replica, sentMs, answeredMs, isTroubled }: PlacedAttempt): string {
  const trouble = isTroubled ? 'in trouble' : 'without trouble'
  return `replica ${replica}, sent at ${sentMs.toFixed(1)}, answered at ${answeredMs.toFixed(1)} ms, ${trouble}`
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
