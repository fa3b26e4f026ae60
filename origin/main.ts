import { handleUncaughtExceptions } from '../shared/uncaught-exceptions.ts'
import { hangupIgnored, onHangup } from '../shared/hangup.ts'
import { createLog } from '../shared/log.ts'
import { refuseArguments } from '../shared/no-arguments.ts'
import { timeToTellFirstKey } from '../shared/tell-first-key.ts'
import { exitOnStartError } from '../shared/start-error.ts'
import { closeOnSignal } from '../shared/shutdown.ts'
import { composeOrigin } from './compose.ts'
import { loadOriginSettings } from './settings.ts'

// Use the npm script if npm started this process. An image has no npm scripts.
const keysCommand =
  process.env['npm_lifecycle_event'] === undefined ? 'node origin/keys.ts' : 'npm run keys --'

refuseArguments(process.argv.slice(2), 'settings come from the environment, see docs/origin.md')

try {
  const { settings, warnings } = loadOriginSettings(process.env)
  const log = createLog('origin', settings.logLevel)
  onHangup(() => log.warn(hangupIgnored))
  for (const warning of warnings) log.warn(warning)

  const origin = composeOrigin(settings, log)
  const address = await origin.listen()
  closeOnSignal(origin, log)
  log.info(address, 'listening')
  handleUncaughtExceptions(log, () => undefined)
  // Not awaited, so that a signal in the meantime still stops the process gracefully.
  timeToTellFirstKey(process)
    .then(() => process.stdout.write(origin.makeFirstKey(keysCommand) ?? ''))
    .catch(exitOnStartError)
} catch (error) {
  exitOnStartError(error)
}
