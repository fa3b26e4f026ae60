import { bounds } from './bounds.ts'
import { median, medianRatio, samplesOf, type Measured, type Results, type Sample } from './results.ts'
import { scenarios } from '../scenarios.ts'

/** The parts of a report as Markdown tables, for the terminal and for `docs/performance.md`. */
export function renderReport(results: Results): string {
  const parts: readonly [string, string][] = [
    ['machine', renderMachine(results)],
    ...scenarios
      .filter(({ name }) => results.cpu.some(({ scenario }) => scenario === name))
      .map(({ name, meaning }): [string, string] => [`${name}: ${meaning}`, renderScenario(results, name)]),
    ...(results.latency.length > 0
      ? [[`latency at ${results.latencyRate} requests a second`, renderLatency(results)] as const]
      : []),
    ...(results.memory.length > 0 ? [['memory', renderMemory(results)] as const] : []),
    ['bounds', renderBounds(results)],
  ].map(([title = '', text = '']) => [title, text])
  return parts.map(([title, text]) => `## ${title}\n\n${text}\n`).join('\n')
}

export function renderMachine({ machine, options, missing }: Results): string {
  const { processor, cores, memoryGib, kernel, date, load, versions } = machine
  const rows: [string, string][] = [
    ['date', date],
    ['processor', `${processor}, ${cores} cores`],
    ['memory', `${memoryGib} GiB`],
    ['kernel', kernel],
    ['load average over a minute', `${load.before} before, ${load.after} after`],
    ['rounds', `${options.rounds}, each of ${options.seconds} s after ${options.warmupRequests} requests`],
    ['connections', String(options.connections)],
    ...Object.entries(versions),
    ...missing.map((reason): [string, string] => ['missing', reason]),
  ]
  return renderTable(['', ''], rows)
}

/** Medians over the rounds; the range of CPU shows the spread of the rounds. */
export function renderScenario(results: Results, scenario: string): string {
  const lines = results.cpu.filter((line) => line.scenario === scenario)
  const reference = samplesOf(results.cpu, scenario, 'sluice')
  const base = reference.length > 0 ? reference : (lines[0]?.samples ?? [])
  return renderTable(
    ['', 'CPU µs', 'user', 'system', 'range', 'of sluice', 'Redis µs', 'requests/s'],
    lines.map(({ subject, samples }) => {
      const cpu = samples.map(({ cpuUs }) => cpuUs)
      return [
        subject,
        medianOf(samples, ({ cpuUs }) => cpuUs),
        medianOf(samples, ({ userUs }) => userUs),
        medianOf(samples, ({ systemUs }) => systemUs),
        `${Math.min(...cpu).toFixed(1)} to ${Math.max(...cpu).toFixed(1)}`,
        medianRatio(samples, base, ({ cpuUs }: Sample) => cpuUs).toFixed(2),
        medianOf(samples, ({ redisUs }) => redisUs),
        median(samples.map(({ requestsPerSecond }) => requestsPerSecond)).toFixed(0),
      ]
    }),
  )
}

export function renderLatency({ latency }: Results): string {
  return renderTable(
    ['', 'p50 µs', 'p99 µs', 'p99.9 µs', 'sent late, p99 µs'],
    latency.map(({ subject, samples }) => [
      subject,
      medianOf(samples, ({ p50Us }) => p50Us, 0),
      medianOf(samples, ({ p99Us }) => p99Us, 0),
      medianOf(samples, ({ p999Us }) => p999Us, 0),
      medianOf(samples, ({ sentLateP99Us }) => sentLateP99Us, 0),
    ]),
  )
}

export function renderMemory({ memory, options }: Results): string {
  return renderTable(
    [
      '',
      'processes',
      'at rest, largest, MB',
      `all with ${options.idleConnections} connections, MB`,
      'KB each',
    ],
    memory.map(({ subject, samples }) => [
      subject,
      medianOf(samples, ({ processes }) => processes, 0),
      medianOf(samples, ({ restBytes }) => restBytes / 1e6),
      medianOf(samples, ({ connectedBytes }) => connectedBytes / 1e6),
      medianOf(samples, ({ bytesPerConnection }) => bytesPerConnection / 1e3),
    ]),
  )
}

export function renderBounds(results: Results): string {
  return renderTable(
    ['', 'at most', 'measured', ''],
    bounds.map(({ text, most, read }) => {
      const figure = read(results)
      if (Number.isNaN(figure)) return [text, String(most), '', 'not measured']
      return [text, String(most), figure.toFixed(2), figure <= most ? 'met' : 'missed']
    }),
  )
}

function medianOf<Kind>(
  samples: Measured<Kind>['samples'],
  figure: (sample: Kind) => number,
  digits = 1,
): string {
  return median(samples.map(figure)).toFixed(digits)
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => pad(cells[column] ?? '', width, column)).join(' | ')} |`
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

function pad(text: string, width: number, column: number): string {
  return column === 0 ? text.padEnd(width) : text.padStart(width)
}
