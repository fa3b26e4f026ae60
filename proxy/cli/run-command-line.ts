import { CommanderError } from 'commander'
import { SettingsError } from '../../shared/settings/settings-error.ts'
import { StartError } from '../../shared/start-error.ts'
import { CommandError, printError, status } from './output.ts'
import { createProgram } from './program.ts'

/**
 * Runs `sluice` with these arguments. The code of each verb is loaded on use, so that starting a gateway does not load the rest.
 *
 * @returns the exit status: 0, 1 for a negative result, 2 for wrong usage; undefined if a gateway keeps running
 */
export async function runCommandLine(args: readonly string[]): Promise<number | undefined> {
  let ended: number | undefined
  const program = createProgram((result) => (ended = result))
  try {
    await program.parseAsync(args, { from: 'user' })
    return ended
  } catch (error) {
    // Commander has already printed the message or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? status.yes : status.usage
    if (error instanceof CommandError) {
      printError(`error: ${error.message}`)
      return error.status
    }
    if (!(error instanceof SettingsError || error instanceof StartError)) throw error
    printError(error.message)
    return status.no
  }
}
