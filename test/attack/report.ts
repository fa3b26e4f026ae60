import { maxGrowthMib, type Outcome } from './measure.ts'

const maxTimes = 2
/** Percentiles below this are noise of the machine. */
const minMs = 5
const maxMemoryMib = 512

/** Returns the requirements that an attacked gateway does not meet. */
export function findProblems({ scenario, before, within, underWay, ...outcome }: Outcome): string[] {
  const { restMib, maxMib, afterMib, afterSeconds, attackers } = outcome
  const problems: readonly (readonly [boolean, string])[] = [
    [!underWay, `the attackers did not get that far: ${JSON.stringify(attackers)}`],
    [before.failed > 0, `requests failed before the attack: ${JSON.stringify(before.failures)}`],
    [
      within.failed > 0,
      `${within.failed} of ${within.requests} requests of another client failed: ${JSON.stringify(within.failures)}`,
    ],
    [
      within.p99Ms > maxTimes * Math.max(before.p99Ms, minMs),
      `the 99th percentile of another client went from ${inMs(before.p99Ms)} to ${inMs(within.p99Ms)}`,
    ],
    [scenario.served?.(attackers) === false, `not all were served: ${JSON.stringify(attackers)}`],
    [maxMib > maxMemoryMib, `it took ${inMib(maxMib)}`],
    [
      afterMib > restMib + maxGrowthMib,
      `of ${inMib(maxMib)} it kept ${inMib(afterMib)} for ${afterSeconds} s, ${inMib(restMib)} being its rest`,
    ],
  ]
  return problems.flatMap(([isThere, text]) => (isThere ? [`${scenario.name}: ${text}`] : []))
}

const head = ['attack', 'proxy', '99th percentile', 'slowest', 'failed', 'processor', 'memory in MiB']

/** The outcomes as a Markdown table, as in docs/operations.md. */
export function renderTable(outcomes: readonly Outcome[]): string {
  const rows = [head, ...outcomes.map(cellsOf)]
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [first = [], ...others] = rows.map(line)
  return [first, line(widths.map((width) => '-'.repeat(width))), ...others].join('\n')
}

/** One outcome, to print while others are still running. */
export function describeOutcome(outcome: Outcome): string {
  const [title, proxy, latency, slowest, failed, processor, memory] = cellsOf(outcome)
  return [
    `${outcome.scenario.name}, ${proxy}: ${title}`,
    `  99th percentile ${latency}, slowest ${slowest}, failed ${failed} ${JSON.stringify(outcome.within.failures)}`,
    `  processor ${processor}, memory ${memory} MiB after ${outcome.afterSeconds} s`,
    `  attackers ${JSON.stringify(outcome.attackers)}`,
  ].join('\n')
}

function cellsOf({ scenario, proxy, before, within, ...outcome }: Outcome): string[] {
  const { restMib, maxMib, afterMib } = outcome
  return [
    scenario.title,
    proxy,
    `${inMs(before.p99Ms)} → ${inMs(within.p99Ms)}`,
    inMs(within.slowestMs),
    `${within.failed} of ${within.requests}`,
    `${(outcome.processorShare * 100).toFixed(0)} %`,
    [restMib, maxMib, afterMib].map((mib) => mib.toFixed(0)).join(' → '),
  ]
}

const inMs = (ms: number): string => (Number.isFinite(ms) ? `${ms.toFixed(1)} ms` : 'nobody served')
const inMib = (mib: number): string => `${mib.toFixed(0)} MiB`
