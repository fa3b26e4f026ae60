import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'

/** What is said of a SIGHUP that changes nothing. */
export const hangupIgnored = 'SIGHUP ignored: settings are read at start only, restart to change them'

/**
 * Keeps SIGHUP from ending the process, which is its default: operators send it to have something read again. It also comes
 * when the terminal that the process was started in is closed. Then nobody is left to stop the process, and it stops as
 * at SIGTERM.
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

/** Whether there is a controlling terminal. The kernel takes it away from the processes of a terminal that is closed. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
