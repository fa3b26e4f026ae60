import { doInTurns, type Steps } from '../../../shared/steps.ts'
import { sumActivities, type Activity } from '../../telemetry/metrics/activity.ts'

const STEP_MS = 10_000
/** Fifteen minutes. */
const STEPS = 90
/** A kilobyte each. If there are more rules, those that were requested first are kept. */
const MAX_RULES = 1_000
/** Maximum rules in a report: those with the most requests. */
const MAX_SENT = 200

/** The outcomes of the counted requests in the last fifteen minutes, in steps of ten seconds. */
export type History = {
  /** Reads the counts, and so closes the steps that have passed. */
  sample(): Promise<void>
  /** Steps are numbered from the epoch, so that the histories of several processes can be merged. */
  read(): HistoryReport
  close(): void
}

export type HistoryReport = {
  readonly stepSeconds: number
  /** The steps from this one to `last` are known. */
  readonly first: number
  /** The step that has not ended yet. */
  readonly last: number
  /** Name, then for each step the requests allowed, refused, and let pass in shadow mode; rules without requests are missing. */
  readonly rules: readonly (readonly [string, readonly number[], readonly number[], readonly number[]])[]
}

type Row = { readonly counts: [Float64Array, Float64Array, Float64Array]; lastUsed: number }

/**
 * Rows are rings: step `n` is at `n % STEPS`. A process that is started anew counts from 0 again, so differences below
 * 0 are taken for none.
 *
 * @param readActivities of all processes of the gateway; it is read every ten seconds, and before each report
 * @param wallNow milliseconds since the epoch
 */
export function createHistory(
  readActivities: () => Promise<readonly Activity[]>,
  wallNow: () => number,
): History {
  const rows = new Map<string, Row>()
  let before: ReadonlyMap<string, Counts> = new Map()
  let last = Math.floor(wallNow() / STEP_MS)
  const started = last
  let sampling: Promise<void> | undefined

  /** The ring's slots for steps that begin now hold values from fifteen minutes ago. */
  function advance(step: number): void {
    const passed = Math.min(STEPS, step - last)
    if (passed <= 0) return
    for (const [name, { counts, lastUsed }] of rows) {
      if (step - lastUsed >= STEPS) rows.delete(name)
      for (let at = step - passed + 1; at <= step; at++) for (const ring of counts) ring[at % STEPS] = 0
    }
    last = step
  }

  function add(name: string, differences: Counts): void {
    let row = rows.get(name)
    if (!row) {
      if (rows.size >= MAX_RULES) return
      row = { counts: [ring(), ring(), ring()], lastUsed: last }
      rows.set(name, row)
    }
    row.lastUsed = last
    const at = last % STEPS
    for (const [index, each] of row.counts.entries()) each[at] = (each[at] ?? 0) + (differences[index] ?? 0)
  }

  /** In turns: with ten thousand rules it takes longer than a request should wait. */
  function* addAll(decisions: Activity['decisions']): Steps<ReadonlyMap<string, Counts>> {
    const counted = new Map<string, Counts>()
    for (const [name, outcomes] of decisions) {
      const counts = countsOf(outcomes)
      counted.set(name, counts)
      const past = before.get(name)
      const differences = counts.map((count, index) => Math.max(0, count - (past?.[index] ?? 0)))
      if (differences.some((count) => count > 0)) add(name, differences)
      yield
    }
    return counted
  }

  async function takeSample(): Promise<void> {
    const activities = await readActivities()
    advance(Math.floor(wallNow() / STEP_MS))
    before = await doInTurns(addAll(sumActivities(activities).decisions))
  }

  /** One at a time, so that a later reading is not taken for an earlier one. */
  function sample(): Promise<void> {
    sampling ??= takeSample().finally(() => (sampling = undefined))
    return sampling
  }

  const timer = setInterval(() => void sample().catch(() => undefined), STEP_MS).unref()

  return {
    sample,
    read() {
      const first = Math.max(started, last - STEPS + 1)
      const sums = Array.from(rows, ([name, { counts }]) => ({ name, counts, sum: total(counts) }))
      const sent = sums.sort((a, b) => b.sum - a.sum).slice(0, MAX_SENT)
      const steps = Array.from({ length: last - first + 1 }, (_, index) => (first + index) % STEPS)
      const unroll = (each: Float64Array): number[] => steps.map((at) => each[at] ?? 0)
      return {
        stepSeconds: STEP_MS / 1000,
        first,
        last,
        rules: sent.map(({ name, counts: [allowed, refused, shadow] }) => {
          return [name, unroll(allowed), unroll(refused), unroll(shadow)] as const
        }),
      }
    },
    close: () => clearInterval(timer),
  }
}

type Counts = readonly number[]

/** Counted by a process while Redis was away, or let through: allowed either way. Sent to another route: refused here. */
function countsOf(outcomes: Activity['decisions'][number][1]): Counts {
  const { allowed, refused, shadow, routed, local, open, unavailable } = outcomes
  return [allowed + local + open, refused + unavailable + routed, shadow]
}

function ring(): Float64Array {
  return new Float64Array(STEPS)
}

function total(counts: Row['counts']): number {
  return counts.reduce((sum, each) => sum + each.reduce((part, count) => part + count, 0), 0)
}
