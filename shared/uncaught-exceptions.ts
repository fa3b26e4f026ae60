import { createExceptionLog } from './exception-log.ts'
import type { Log } from './log.ts'

/**
 * Keeps the process running after an uncaught exception or an unhandled rejection: it is logged with its stack, and counted. Call it
 * after the start: an exception before that has to end the process.
 *
 * Node advises to exit, as the state after the exception is unknown. Here continuing is the lesser evil: a proxy serves many clients at
 * once, and a bug that one of them can trigger must not let it end the requests of all others, again and again. Little state is shared
 * between requests, and limits are decided in the store. Operators see it in the log and in `sluice_uncaught_errors_total`, and can
 * restart when it suits them.
 *
 * @param onError called for each, to count it
 */
export function handleUncaughtExceptions(log: Log, onError: () => void): void {
  const logException = createExceptionLog(log)
  // A rejection without a listener of its own arrives here too.
  process.on('uncaughtException', (error, origin) => {
    onError()
    logException({ err: error, origin }, 'uncaught exception')
  })
}
