import { createExceptionLog } from './exception-log.ts'
import type { Log } from './log.ts'

/**
 * Keeps the process running after an uncaught exception or an unhandled rejection, which it logs with its stack and counts. Call it once
 * the process has started: an earlier exception must end the process.
 *
 * Node's documentation advises exiting, because the state after the exception is unknown. Here, continuing is the lesser evil: a proxy
 * serves many clients at once, and a client that can trigger a bug must not be able to end the requests of all others, again and again.
 * Requests share little state, and limits are decided in the store. Operators see the exception in the log and in
 * `sluice_uncaught_errors_total`, and can restart when it suits them.
 *
 * @param onError called for each exception, to count it
 */
export function handleUncaughtExceptions(log: Log, onError: () => void): void {
  const logException = createExceptionLog(log)
  // Unhandled rejections arrive here too, as they have no listener of their own.
  process.on('uncaughtException', (error, origin) => {
    onError()
    logException({ err: error, origin }, 'uncaught exception')
  })
}
