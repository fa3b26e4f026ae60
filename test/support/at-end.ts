/**
 * Calls `cleanUp` when this process ends, interrupted or not. It must do its work synchronously.
 *
 * Exit handlers alone are not enough: a signal whose only listeners are those of certain libraries ends the process
 * without them.
 */
export function atEnd(cleanUp: () => void): void {
  process.once('exit', cleanUp)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      cleanUp()
      process.kill(process.pid, signal)
    })
  }
}
