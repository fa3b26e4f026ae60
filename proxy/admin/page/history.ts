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
 * @param readActivities of all processes of the gateway; it is read every ten seconds, and before each report
 * @param wallNow milliseconds since the epoch
 */
export function createHistory(
  readActivities: () => Promise<readonly Activity[]>,
  wallNow: () => number,
): History {
  return new RecentHistory(readActivities, wallNow)
}

/**
 * Rows are rings: step `n` is at `n % STEPS`. A process that is started anew counts from 0 again, so differences below
 * 0 are taken for none.
 */
class RecentHistory implements History {
  readonly #readActivities: () => Promise<readonly Activity[]>
  readonly #wallNow: () => number
  readonly #rows = new Map<string, Row>()
  /** The counts of the last sample. */
  #before: ReadonlyMap<string, Counts> = new Map()
  readonly #started: number
  #last: number
  #sampling: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  constructor(readActivities: () => Promise<readonly Activity[]>, wallNow: () => number) {
    this.#readActivities = readActivities
    this.#wallNow = wallNow
    this.#started = this.#last = this.#readStep()
    this.#timer = setInterval(() => void this.sample().catch(() => undefined), STEP_MS).unref()
  }

  /** Takes a reading, one at a time, so that a later one is not taken for an earlier one. */
  sample(): Promise<void> {
    this.#sampling ??= this.#takeSample().finally(() => (this.#sampling = undefined))
    return this.#sampling
  }

  read(): HistoryReport {
    const last = this.#last
    const first = Math.max(this.#started, last - STEPS + 1)
    const sums = Array.from(this.#rows, ([name, { counts }]) => ({ name, counts, sum: total(counts) }))
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
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #readStep(): number {
    return Math.floor(this.#wallNow() / STEP_MS)
  }

  async #takeSample(): Promise<void> {
    const activities = await this.#readActivities()
    this.#advance(this.#readStep())
    this.#before = await doInTurns(this.#addAll(sumActivities(activities).decisions))
  }

  /** The ring's slots for steps that begin now hold values from fifteen minutes ago. */
  #advance(step: number): void {
    const passed = Math.min(STEPS, step - this.#last)
    if (passed <= 0) return
    for (const [name, { counts, lastUsed }] of this.#rows) {
      if (step - lastUsed >= STEPS) this.#rows.delete(name)
      for (let at = step - passed + 1; at <= step; at++) for (const ring of counts) ring[at % STEPS] = 0
    }
    this.#last = step
  }

  /** Adds them in turns: with ten thousand rules it takes longer than a request should wait. */
  *#addAll(decisions: Activity['decisions']): Steps<ReadonlyMap<string, Counts>> {
    const counted = new Map<string, Counts>()
    for (const [name, outcomes] of decisions) {
      const counts = countsOf(outcomes)
      counted.set(name, counts)
      const past = this.#before.get(name)
      const differences = counts.map((count, index) => Math.max(0, count - (past?.[index] ?? 0)))
      if (differences.some((count) => count > 0)) this.#add(name, differences)
      yield
    }
    return counted
  }

  #add(name: string, differences: Counts): void {
    let row = this.#rows.get(name)
    if (!row) {
      if (this.#rows.size >= MAX_RULES) return
      row = { counts: [ring(), ring(), ring()], lastUsed: this.#last }
      this.#rows.set(name, row)
    }
    row.lastUsed = this.#last
    const at = this.#last % STEPS
    for (const [index, each] of row.counts.entries()) each[at] = (each[at] ?? 0) + (differences[index] ?? 0)
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
