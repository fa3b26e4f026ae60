import type { Log } from '../../../shared/log.ts'
import { doInTurns, type Steps } from '../../../shared/steps.ts'
import { sumActivities, type Activity } from '../../telemetry/metrics/activity.ts'

const STEP_MS = 10_000
/** Number of steps: fifteen minutes. */
const STEPS = 90
/** Maximum number of rules, which take a kilobyte each. If there are more rules, those that counted requests first are kept. */
const MAX_RULES = 1_000
/** Maximum rules in a report: those with the most requests. */
const MAX_SENT = 200

export type HistoryReport = {
  readonly stepSeconds: number
  /** The first known step. */
  readonly first: number
  /** The step that has not ended yet. */
  readonly last: number
  /**
   * For each rule: its name, then for each step the number of requests allowed, refused, and over the limit in shadow mode. Rules without
   * requests are missing.
   */
  readonly rules: readonly (readonly [string, readonly number[], readonly number[], readonly number[]])[]
}

type Row = { readonly counts: [Float64Array, Float64Array, Float64Array]; lastUsed: number }

/**
 * The outcomes of the counted requests in the last fifteen minutes, in steps of ten seconds.
 *
 * Rows are rings: step `n` is at `n % STEPS`. A restarted process counts from 0 again, so negative differences count as 0.
 */
export class History {
  readonly #readActivities: () => Promise<readonly Activity[]>
  readonly #wallNow: () => number
  readonly #rows = new Map<string, Row>()
  /** The counts of the last sample. */
  #before: ReadonlyMap<string, Counts> = new Map()
  readonly #started: number
  #last: number
  #sampling: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  /**
   * @param readActivities reads the activities of all processes of the gateway; called every ten seconds, and before each report
   * @param wallNow milliseconds since the epoch
   * @param log gets an error if the activities cannot be read for a step
   */
  constructor(readActivities: () => Promise<readonly Activity[]>, wallNow: () => number, log: Log) {
    this.#readActivities = readActivities
    this.#wallNow = wallNow
    this.#started = this.#last = this.#readStep()
    const onError = (err: unknown): void =>
      log.error({ err }, 'cannot read the counts for the history of the page')
    this.#timer = setInterval(() => void this.sample().catch(onError), STEP_MS).unref()
  }

  /** Reads the counts, which closes the steps that have passed. Takes one reading at a time, so that they are processed in order. */
  sample(): Promise<void> {
    this.#sampling ??= this.#takeSample().finally(() => (this.#sampling = undefined))
    return this.#sampling
  }

  /** Steps are numbered from the epoch, so that the histories of several processes can be merged. */
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

  /** Clears the slots of steps that begin now, which hold values from fifteen minutes ago. */
  #advance(step: number): void {
    const passed = Math.min(STEPS, step - this.#last)
    if (passed <= 0) return
    for (const [name, { counts, lastUsed }] of this.#rows) {
      if (step - lastUsed >= STEPS) this.#rows.delete(name)
      for (let at = step - passed + 1; at <= step; at++) for (const ring of counts) ring[at % STEPS] = 0
    }
    this.#last = step
  }

  /** Adds the decisions in turns of the event loop: with ten thousand rules, this takes longer than a request should wait. */
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

/**
 * Requests that a process counted or let through while Redis was unavailable count as allowed; requests sent to another route count as
 * refused.
 */
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
