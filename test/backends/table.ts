import type { Outcome } from './trial.ts'

const columns: readonly (readonly [title: string, meaning: string, value: (outcome: Outcome) => number])[] = [
  ['direct', 'reached a handler when sent to the backend itself; of these', ({ direct }) => direct],
  ['counted', "  counted by the gateway under that handler's rule", ({ directCounted }) => directCounted],
  ['refused', '  refused by the gateway', ({ directRefused }) => directRefused],
  [
    'elsewhere',
    '  forwarded in a form that does not reach that handler',
    ({ directElsewhere }) => directElsewhere,
  ],
  ['through', 'reached a handler through the gateway', ({ reached }) => reached],
  ['for nothing', 'counted, although no handler was reached', ({ countedForNothing }) => countedForNothing],
  [
    'uncounted',
    'reached a handler through the gateway without being counted',
    ({ uncounted }) => uncounted.length,
  ],
]

export const heading = row(
  '',
  columns.map(([title]) => title),
)

export const legend = columns.map(([title, meaning]) => `${title.padStart(12)}: ${meaning}\n`).join('')

export function outcomeRow(name: string, outcome: Outcome): string {
  return row(
    name,
    columns.map(([, , value]) => String(value(outcome))),
  )
}

function row(name: string, cells: readonly string[]): string {
  return name.padEnd(34) + cells.map((cell) => cell.padStart(12)).join('')
}
