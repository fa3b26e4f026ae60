import { printable } from '../../shared/settings/problems.ts'

/** The exit status of a verb: `no` is a negative result, such as a file with mistakes. */
export const status = { yes: 0, no: 1, usage: 2 } as const

/** A problem that the user can fix, without a stack trace. Ends the command with its status. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/**
 * Prints lines. Parts of them may come from a log, a gateway or a program in its place, so characters that could move the terminal's cursor
 * are escaped.
 */
export function print(text: string): void {
  process.stdout.write(`${printableLines(text)}\n`)
}

/** Prints JSON. The escapes of `print` are valid in JSON and do not change the value. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value))
}

/** Prints warnings and mistakes to standard error, in the same way as `print`. */
export function printError(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`)
}

function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

/**
 * Formats a table. Each column is as wide as its widest cell. Columns whose name begins with `>` are aligned to the right. A cell has one
 * line, and its width includes escapes.
 */
export function formatTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const isRight = columns.map((name) => name.startsWith('>'))
  const titles = columns.map((name) => name.replace(/^>/, '').toUpperCase())
  const cells = [titles, ...rows.map((row) => row.map(printable))]
  const widths = titles.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells
    .map((row) =>
      titles
        .map((_, column) => {
          const cell = row[column] ?? ''
          const width = widths[column] ?? 0
          return isRight[column] ? cell.padStart(width) : cell.padEnd(width)
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Formats a number for people: `1,234,567`. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** Formats a number of things for people: `1 rule`, `1,234 rules`. */
export function formatCountOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

const durationUnits = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const

/**
 * Formats a duration for people: `2d 3h`, `14m 57s`, `9s`; `-` if undefined. Rounds seconds up, and leaves out units after the two largest.
 */
export function formatDuration(seconds: unknown): string {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return '-'
  const whole = Math.ceil(seconds)
  for (const [index, [unit, size]] of durationUnits.entries()) {
    if (whole < size) continue
    const [nextUnit, nextSize] = durationUnits[index + 1] ?? ['s', 1]
    const rest = Math.floor((whole % size) / nextSize)
    return `${Math.floor(whole / size)}${unit}${rest === 0 ? '' : ` ${rest}${nextUnit}`}`
  }
  return `${whole}s`
}
