import type { Log } from './log.ts'

/** An object made at the composition root that must be closed. */
export type Running = {
  /** Shuts down gracefully: requests in flight finish within the grace period. Resolves when everything is closed. */
  close(): Promise<void>
}

/**
 * Milliseconds within which two signals count as one. A Ctrl+C can arrive twice: from the terminal, which signals the whole process group,
 * and from `npm`, which forwards the signal.
 */
const SAME_SIGNAL_MS = 1000
/** Milliseconds to wait for the process to exit by itself after everything is closed. A handle that keeps it running is a leak. */
const LINGER_MS = 1000

/**
 * Closes `running` on SIGTERM or SIGINT, and exits with status 0. A second signal, at least a second later, exits at once with status 1,
 * without waiting for the grace period.
 */
export function closeOnSignal(running: Running, log: Log): void {
  let stopping = false
  let mayForce = false

  const stop = (signal: NodeJS.Signals): void => {
    if (mayForce) {
      log.warn({ signal }, 'second signal: exiting without waiting for open connections')
      process.exit(1)
    }
    if (stopping) return
    stopping = true
    log.info({ signal }, 'stopping')
    setTimeout(() => (mayForce = true), SAME_SIGNAL_MS).unref()

    running.close().then(
      () => {
        log.info('stopped')
        process.exitCode = 0
        setTimeout(() => {
          log.warn({ open: countByType(process.getActiveResourcesInfo()) }, 'exiting with open handles')
          process.exit()
        }, LINGER_MS).unref()
      },
      (error: unknown) => {
        log.error({ err: error }, 'shutdown failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

/** Returns how many there are of each type: a process may have thousands of open connections. */
function countByType(types: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...Map.groupBy(types, (type) => type)].map(([type, { length }]) => [type, length]),
  )
}
