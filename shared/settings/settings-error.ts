import { printable } from './problems.ts'

/** Invalid settings: every problem found, one line each, secrets left out. */
export class SettingsError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const lines = problems.map(printable)
    super(lines.join('\n'))
    this.name = 'SettingsError'
    this.problems = lines
  }
}
