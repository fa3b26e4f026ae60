import type { Log } from './log.ts'

/** Something made at the composition root, and how to end it. */
export type Running = {
  /** Ends it in order: what is in flight finishes within the grace period. Resolves when all is closed. */
  close(): Promise<void>
}

/**
 * Waits for SIGTERM or SIGINT, closes what runs and sets exit status 0. A second signal ends the process at once with
 * status 1, for an operator who does not want to wait for the grace period.
 */
export function closeOnSignal(running: Running, log: Log): void {
  let stopping = false
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'stopping')
    running.close().then(
      () => {
        log.info('stopped')
        process.exitCode = 0
      },
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}
