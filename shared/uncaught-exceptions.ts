import type { Log } from './log.ts'

/**
 * Keeps the process alive through an exception that nobody caught and a promise that nobody looked at: it is logged
 * with its stack and counted, and the process goes on.
 *
 * Node advises to exit, as the state that the exception left may be anything. Here going on is the lesser evil. A proxy
 * holds many clients' requests at once, and a bug that one of them can reach must not let it end all the others', again
 * and again. Little state is shared between requests, and what is decided about limits is decided in the store. An
 * operator is told by the log and by `sluice_uncaught_errors_total`, and restarts when it suits.
 *
 * To be called when the start is over: what goes wrong before that has to end the process.
 *
 * @param onError called for each, to count it
 */
export function handleUncaughtExceptions(log: Log, onError: () => void): void {
  // A rejection without a listener of its own arrives here too.
  process.on('uncaughtException', (error, origin) => {
    onError()
    log.error({ err: error, origin }, 'uncaught exception')
  })
}
