import cluster from 'node:cluster'
import type { Log } from '../../../shared/log.ts'
import { doInTurns } from '../../../shared/steps.ts'
import { handleUncaughtExceptions } from '../../../shared/uncaught-exceptions.ts'
import { answerClients } from '../../admin/worker-clients.ts'
import { answerReports } from '../../admin/worker-reports.ts'
import { createWorkerDecisions } from '../../limits/clients/crowdsec/worker-decisions.ts'
import { createWorkerClientTable } from '../../limits/clients/worker-entries.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { ThrottledClients } from '../../limits/clients/throttled-clients.ts'
import { createWorkerLimiter } from '../../limits/store/create-limiter.ts'
import { noPlans } from '../../limits/plans/plan-store.ts'
import type { Names } from '../../names/names.ts'
import { policiesOf } from '../../policy.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { counterOptions, now, type Counting } from '../counting.ts'
import { notifyPrimary } from '../observe/webhooks.ts'
import { takeTables } from '../reload/worker-tables.ts'
import { composeServing } from '../serving/compose.ts'
import type { Gateway } from '../serving/serving.ts'
import { createAskForKept } from './kept-files.ts'
import { GATEWAY_ID, portToPrimary, WORKER_NUMBER } from './processes.ts'

/**
 * How long requests wait for the primary process, in milliseconds, unless `storeTimeout` is longer. It lasts longer than any pause of a
 * process on a busy machine: a worker that counts by itself admits the whole quota once more, however often the client was refused.
 */
const PRIMARY_TIMEOUT_MS = 5_000

/** Composes one of several processes that share the clients' port. It exits when its primary process exits. */
export async function composeWorker(settings: GatewaySettings, log: Log, names: Names): Promise<Gateway> {
  // The channel fails if the primary process has exited. `node:cluster` then ends this process.
  cluster.worker?.on('error', () => undefined)
  const count = settings.redisUrl === undefined ? countInPrimary(settings, log) : undefined
  let { rules } = settings
  const serving = await composeServing(settings, log, {
    names,
    count,
    gatewayId: process.env[GATEWAY_ID],
    warnsOfCertificate: process.env[WORKER_NUMBER] === '0',
    notify: notifyPrimary(settings),
    askForKept: createAskForKept(portToPrimary),
    ...(settings.crowdsec && { crowdsec: createWorkerDecisions(portToPrimary, now) }),
  })
  answerReports({
    send: (message) => process.connected && portToPrimary.send(message),
    listen: (receive) => portToPrimary.listen(receive),
    takeSnapshot: () => serving.metrics.takeSnapshot(),
    readHealth: () => serving.health.report(),
    readActivity: () => serving.metrics.readActivity(),
    answerClients: (question) => answerClients(question, serving.clients, rules),
  })
  takeTables(settings, async (next, tableHash) => {
    const prepared = await serving.prepare(next, tableHash)
    return {
      ...prepared,
      commit() {
        rules = next.rules
        return prepared.commit()
      },
    }
  })
  return {
    reload: () => serving.reloadCertificate(),
    async listen() {
      const ports = await serving.listen()
      if (!ports) return undefined
      handleUncaughtExceptions(log, () => serving.metrics.telemetry.errorCaught('process'))
      return { ...ports, adminPort: settings.adminPort }
    },
    async close() {
      await serving.close()
      cluster.worker?.disconnect()
    },
  }
}

function countInPrimary(
  settings: GatewaySettings,
  log: Log,
): (telemetry: Telemetry, onForget: ThrottledClients['forget']) => Counting {
  return (telemetry, onForget) => {
    const options = counterOptions(settings, { log, telemetry, onForget })
    const storeTimeoutMs = Math.max(options.storeTimeoutMs, PRIMARY_TIMEOUT_MS)
    const limiter = createWorkerLimiter(portToPrimary, { ...options, storeTimeoutMs })
    return {
      limiter,
      clientTable: createWorkerClientTable(portToPrimary, { now, telemetry, log }),
      operations: {
        inspect: () => Promise.resolve([]),
        reset: () => Promise.resolve('unavailable'),
        plans: noPlans,
      },
      storeState: () => limiter.storeState(),
      useRules: (rules) => doInTurns(limiter.useTable(policiesOf(rules))),
      ready: () => Promise.resolve(),
      close() {
        limiter.close()
        return Promise.resolve()
      },
    }
  }
}
