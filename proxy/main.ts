import cluster from 'node:cluster'
import { hangupIgnored, onHangup } from '../shared/hangup.ts'
import { createLog } from '../shared/log.ts'
import { refuseArguments } from '../shared/no-arguments.ts'
import { closeOnSignal } from '../shared/shutdown.ts'
import { exitOnStartError } from '../shared/start-error.ts'
import { collectGarbage } from '../shared/v8-gc.ts'
import { composeGateway } from './app/gateway.ts'
import { fitToOpenFiles, readOpenFilesLimit } from './app/open-files.ts'
import { describeStart } from './app/startup-log.ts'
import { warnOfUnknownUpstream } from './app/upstream.ts'
import { loadGatewaySettings } from './config/settings.ts'

refuseArguments(
  process.argv.slice(2),
  'settings come from the environment and sluice.yaml, see docs/configuration.md',
)

try {
  const read = loadGatewaySettings(process.env, process.cwd())
  const fitted = fitToOpenFiles(read.settings, readOpenFilesLimit())
  const { settings } = fitted
  const log = createLog('gateway', settings.logLevel)
  onHangup(() => {
    // With HTTPS, SIGHUP reloads certificate and key.
    if (settings.tlsCertFile === undefined) log.warn(hangupIgnored)
  })
  // The primary process has logged the warnings already.
  if (cluster.isPrimary) {
    for (const warning of [...read.warnings, ...fitted.warnings]) log.warn(warning)
    warnOfUnknownUpstream(settings.upstreamUrl, log)
  }

  const gateway = await composeGateway(settings, log)
  closeOnSignal(gateway, log)
  // The start leaves some 20 MB of garbage. Collect it now: a later collection would discard optimized code.
  collectGarbage()
  const ports = await gateway.listen()
  if (ports && cluster.isPrimary) log.info(describeStart(settings, ports), 'listening')
  else if (ports) log.info('worker listening')
} catch (error) {
  exitOnStartError(error)
}
