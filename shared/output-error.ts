import { reasonOf } from './settings/problems.ts'

/**
 * Ends the process when standard output cannot be written: with a line and status 1, or quietly if the reader has exited, as in
 * `sluice replay access.log | head`. Without it `console.log` ignores the error.
 */
export function exitOnOutputError(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit()
    process.stderr.write(`error: standard output cannot be written (${reasonOf(error)})\n`)
    process.exit(1)
  })
}
