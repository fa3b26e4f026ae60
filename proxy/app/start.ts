import cluster from 'node:cluster'
import { onHangup } from '../../shared/hangup.ts'
import { createLog } from '../../shared/log.ts'
import { refuseArguments } from '../../shared/no-arguments.ts'
import { closeOnSignal } from '../../shared/shutdown.ts'
import { exitOnStartError } from '../../shared/start-error.ts'
import { collectGarbage } from '../../shared/v8-gc.ts'
import { composeGateway } from './gateway.ts'
import { composeNames, lookUpEverywhere } from './upstreams/names.ts'
import type { ReadAtStart } from './reload/settings-source.ts'
import { askForSettings } from './reload/worker-tables.ts'
import type { Gateway } from './serving/serving.ts'
import { describeStart } from './observe/startup-log.ts'
import { warnOfUnknownUpstreams } from './upstreams/unknown-names.ts'

refuseArguments(
  process.argv.slice(2),
  'settings come from the environment and sluice.yaml, see docs/configuration.md',
)

/** The modules that read and check settings are loaded only here, because they take 10 MB, which a worker does not need. */
async function readOwnSettings(): Promise<ReadAtStart> {
  const { readSettings } = await import('./reload/settings-source.ts')
  return readSettings(process.env, process.cwd())
}

let gateway: Gateway | undefined
// With HTTPS, SIGHUP also reloads the certificate and the key. A gateway that is starting reads everything in any case.
onHangup(() => gateway?.reload())
try {
  const { settings, warnings, source } = cluster.isWorker
    ? { settings: await askForSettings(), warnings: [], source: undefined }
    : await readOwnSettings()
  const log = createLog('gateway', settings.logLevel)
  const names = composeNames()
  lookUpEverywhere(names)
  // The primary process has logged the warnings already.
  if (cluster.isPrimary) {
    for (const warning of warnings) log.warn(warning)
    warnOfUnknownUpstreams(settings, { names, log })
  }

  gateway = await composeGateway(settings, log, source, names)
  closeOnSignal(gateway, log)
  // The start leaves some 20 MB of garbage. Collect it now: a later collection would discard optimized code.
  collectGarbage()
  const ports = await gateway.listen()
  if (ports && cluster.isPrimary) log.info(describeStart(settings, ports), 'listening')
  else if (ports) log.info('worker listening')
} catch (error) {
  exitOnStartError(error)
}
