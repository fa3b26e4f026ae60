import { printable } from '../../../../shared/settings/problems.ts'
import { writeClient } from '../../operate/client-argument.ts'
import { formatCount, formatCountOf, formatTable, print, printError } from '../../output.ts'
import type { Report, RuleReport } from '../report.ts'

/**
 * Prints the report as text, and notes about unusable lines and requests to standard error. @param limits the name of the table of limits
 */
export function printReport(report: Report, limits: string): void {
  const { lines, from, to, requests, rules } = report
  const formats = Object.entries(lines.formats).map(([name, count]) => `${formatCount(count)} ${name}`)
  print(
    `${formatCount(requests.total)} requests from ${from ?? '-'} to ${to ?? '-'} (${formats.join(', ') || 'none'})`,
  )
  print(`limits: ${limits}`)
  print(
    `${formatCount(requests.limited)} counted by a rule, ${formatCount(requests.refused)} refused` +
      (requests.banned > 0 ? ` (${formatCount(requests.banned)} of them as their client was banned)` : '') +
      (requests.denied > 0 ? `, ${formatCount(requests.denied)} denied by denyList` : '') +
      (requests.excluded > 0 ? `; ${formatCount(requests.excluded)} more left out (--exclude)` : ''),
  )
  print('')
  print(
    formatTable(
      ['rule', '>requests', '>refused', '>clients', '>refused', 'busiest', '>in a window', '>over', ''],
      rules.map(cellsOf),
    ),
  )
  const unknown = rules.flatMap(({ name, requests: all, unknown: missing }) =>
    missing.map(
      ({ what, requests: count }) =>
        `  ${name}: ${what} (${formatCount(count)} of ${formatCount(Math.max(all, count))} requests)`,
    ),
  )
  if (unknown.length > 0)
    print(['', 'not in the log, so these rules may count otherwise:', ...unknown].join('\n'))
  const bans = rules.flatMap(({ name, bans: count = 0 }) =>
    count > 0 ? `${name}: ${formatCount(count)}` : [],
  )
  if (bans.length > 0) print(`\nbans by rules: ${bans.join(', ')}`)
  printNotes(report)
}

function cellsOf({
  name,
  mode,
  over,
  delayed = 0,
  requests,
  refused,
  clients,
  clientsRefused,
  busiest,
}: RuleReport): string[] {
  const [first] = busiest
  return [
    name,
    formatCount(requests),
    formatCount(refused),
    formatCount(clients),
    formatCount(clientsRefused),
    first ? writeClient(first.client) : '-',
    first ? formatCount(first.peak) : '-',
    first && first.over > 0 ? formatCount(first.over) : '-',
    mode === 'shadow' ? 'shadow: refuses nothing' : describeOver(over, delayed),
  ]
}

function describeOver(over: RuleReport['over'], delayed: number): string {
  if (!over) return ''
  return 'route' in over
    ? `not refused, but sent to route ${over.route}`
    : `${formatCount(delayed)} more wait, up to ${over.delayMs / 1000} s`
}

/** Prints notes about input that was left out. */
function printNotes({ lines, requests }: Report): void {
  const rejected = Object.entries(requests.rejected)
  if (rejected.length > 0) printError('\nmalformed requests, rejected before any rule:')
  for (const [why, count] of rejected) printError(`  ${formatCount(count)}: ${why}`)
  if (requests.late > 0)
    printError(
      `\n${formatCount(requests.late)} requests were too far out of order: counted at the time of the requests before them`,
    )
  if (requests.ofProxies > 0)
    printError(
      `\n${formatCountOf(requests.ofProxies, 'request')} counted by the address of a trusted proxy: the log does not name their clients`,
    )
  if (requests.untracked > 0)
    printError(
      `\n${formatCount(requests.untracked)} requests are of clients beyond the first 2,000,000, which the report does not list by client`,
    )
  if (lines.unreadable === 0) return
  printError(`\n${formatCountOf(lines.unreadable, 'line')} could not be read:`)
  for (const { file, line, why, text } of lines.examples)
    printError(`  ${file}:${line}: ${why}: ${printable(text)}`)
}
