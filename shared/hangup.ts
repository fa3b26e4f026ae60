import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'

/** Logged for a SIGHUP that has no effect. */
export const hangupIgnored = 'SIGHUP ignored: the settings are read at startup only; restart to change them'

/**
 * Prevents SIGHUP from ending the process, which is the default, because operators send it for a reload. The kernel also sends SIGHUP when
 * the terminal of the process is closed; then the process stops as it does for SIGTERM.
 *
 * @param onReload called for every SIGHUP that an operator has sent
 */
export function onHangup(onReload: () => void): void {
  const startedInTerminal = (isatty(0) || isatty(1)) && hasTerminal()
  process.on('SIGHUP', () => {
    if (startedInTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM')
    else onReload()
  })
}

/** Whether there is a controlling terminal. Processes lose it when the terminal is closed. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
