import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Log } from '../../shared/log.ts'
import { StartError } from '../../shared/start-error.ts'
import { handleUncaughtExceptions } from '../../shared/uncaught-exceptions.ts'
import { createClientOperations } from '../admin/client-operations.ts'
import { combineHealth, createHealth } from '../admin/health.ts'
import { answerClients, createWorkersOperations } from '../admin/worker-clients.ts'
import { answerReports, createWorkerReports } from '../admin/worker-reports.ts'
import type { GatewaySettings } from '../config/settings.ts'
import type { ThrottledClients } from '../decide/throttled-clients.ts'
import { policiesOf } from '../policy.ts'
import { createEmbeddedLimiter, createWorkerLimiter } from '../limiter/create-limiter.ts'
import { serveLimiter, tellReset, type LimiterPort } from '../limiter/worker-ipc.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { renderMetrics, watchProcess } from '../telemetry/prometheus.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { composeAdmin } from './admin.ts'
import { counterOptions, type Counting } from './counting.ts'
import { composeServing, type Gateway } from './serving.ts'
import { version } from './version.ts'

/** How long the primary process waits for a worker's figures. */
const reportTimeoutMs = 1_000
/** Delay before an exited worker is restarted, so that one that fails at its start does not keep the machine busy. */
const restartDelayMs = 1_000

/**
 * The primary process of a gateway with several workers. It serves no clients: it starts the workers, restarts those
 * that exit, serves the admin listener for all of them, and without Redis keeps the counters for all of them.
 */
export function composePrimary(settings: GatewaySettings, log: Log): Gateway {
  const policies = policiesOf(settings.rules)
  const metrics = createMetrics({
    policies: [],
    limitsEnabled: !settings.rateLimitingDisabled,
    version,
    readNode: watchProcess('sluice_'),
  })
  const embedded =
    settings.redisUrl === undefined
      ? createEmbeddedLimiter(counterOptions(settings, log, metrics.telemetry, tellWorkers))
      : undefined
  const reports = createWorkerReports(reportTimeoutMs)
  const own = createHealth({ storeState: () => 'unknown', upstreamState: () => 'unknown' })
  const isStopping = (): boolean => own.read().status === 'stopping'
  const asked = createWorkersOperations(reports.askClients)
  const clients = embedded
    ? {
        ...createClientOperations({
          counters: embedded,
          limited: { list: () => [] },
          onReset: () => metrics.telemetry.clientReset(),
          log,
        }),
        listLimited: (policyName: string | undefined, limit: number) => asked.listLimited(policyName, limit),
      }
    : asked
  const admin = composeAdmin(settings, log, {
    clients,
    readHealth: async () => combineHealth(own.read().status, await reports.readHealth()),
    readMetrics: async () => renderMetrics([await metrics.takeSnapshot(), ...(await reports.readMetrics())]),
  })

  // Workers that take connections from one socket of the kernel's, instead of each being handed over by this process.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const startLater = (): void => {
    setTimeout(() => own.read().status === 'ready' && start(), restartDelayMs)
  }
  const start = (): Worker | undefined => {
    const worker = fork(log)
    if (!worker) {
      startLater()
      return undefined
    }
    reports.add(worker)
    const served = embedded && serveLimiter({ counters: embedded, policies, port: portTo(worker) })
    worker.on('exit', (code, signal) => {
      served?.close()
      if (own.read().status !== 'ready') return
      log.error({ worker: worker.process.pid, code, signal }, 'worker exited; restarting')
      startLater()
    })
    return worker
  }

  // The workers reload the certificates.
  const passOn = (signal: NodeJS.Signals): void => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill(signal)
  }
  if (settings.tlsCertFile !== undefined) process.on('SIGHUP', passOn)

  return {
    async listen() {
      const adminPort = await admin.listen()
      if (isStopping()) return undefined
      const workers = Array.from({ length: settings.workers }, start)
      const ports = await Promise.all(workers.map(listeningPort)).catch((error: unknown) => {
        // Workers that were told to stop do not listen any more.
        if (isStopping()) return undefined
        throw error
      })
      if (!ports) return undefined
      own.markReady()
      // A worker that exited while others were still starting has not been restarted yet.
      for (const worker of workers) if (worker?.isDead()) startLater()
      handleUncaughtExceptions(log, () => metrics.telemetry.errorCaught('process'))
      return { port: ports[0] ?? settings.port, adminPort }
    },
    async close() {
      own.beginStopping()
      const running = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
      await Promise.all(
        running.map(async (worker) => {
          const exit = once(worker, 'exit')
          worker.process.kill('SIGTERM')
          await exit
        }),
      )
      await admin.close()
      process.off('SIGHUP', passOn)
    },
  }
}

/** Undefined if the machine has no processes, files or memory left, which is logged. */
function fork(log: Log): Worker | undefined {
  const fail = (err: unknown): void => log.error({ err }, 'cannot start a worker')
  try {
    const worker = cluster.fork()
    const isStarted = worker.process.pid !== undefined
    // For a running worker it is an error of the IPC channel: the worker is about to exit, which is another event.
    worker.on('error', (err) =>
      isStarted ? log.debug({ err }, 'cannot send a message to a worker') : fail(err),
    )
    if (isStarted) return worker
    // It will never emit `exit`, so nothing must wait for it.
    delete cluster.workers?.[worker.id]
  } catch (error) {
    fail(error)
  }
  return undefined
}

/** One of several processes that share the clients' port. It ends with its primary process. */
export async function composeWorker(settings: GatewaySettings, log: Log): Promise<Gateway> {
  // The channel to a primary process that is gone. `node:cluster` then ends this one.
  cluster.worker?.on('error', () => undefined)
  const counting = settings.redisUrl === undefined ? countInPrimary(settings, log) : undefined
  const policies = settings.rules.map(({ policy }) => policy)
  const serving = await composeServing(settings, log, counting)
  answerReports({
    send: (message) => process.connected && portToPrimary.send(message),
    listen: (receive) => portToPrimary.listen(receive),
    takeSnapshot: () => serving.metrics.takeSnapshot(),
    readHealth: () => serving.health.read(),
    answerClients: (question) => answerClients(question, serving.clients, policies),
  })
  return {
    async listen() {
      const address = await serving.listen()
      if (!address) return undefined
      handleUncaughtExceptions(log, () => serving.metrics.telemetry.errorCaught('process'))
      return { port: address.port, adminPort: settings.adminPort }
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
): (telemetry: Telemetry, forgotten: ThrottledClients['forget']) => Counting {
  return (telemetry, forgotten) => {
    const limiter = createWorkerLimiter(portToPrimary, counterOptions(settings, log, telemetry, forgotten))
    return {
      limiter,
      operations: { inspect: () => Promise.resolve([]), reset: () => Promise.resolve('unavailable') },
      storeState: () => limiter.storeState(),
      ready: () => Promise.resolve(),
      close() {
        limiter.close()
        return Promise.resolve()
      },
    }
  }
}

/** A client was reset in this process, which has the counters: tells the workers to forget what they have cached. */
function tellWorkers(policyName: string | undefined, partitionKey: string): void {
  for (const worker of Object.values(cluster.workers ?? {})) {
    if (worker) tellReset(portTo(worker), policyName, partitionKey)
  }
}

const portToPrimary: LimiterPort = {
  send: (message) => process.send?.(message),
  listen: (receive) => process.on('message', receive),
}

function portTo(worker: Worker): LimiterPort {
  return {
    send: (message) => worker.send(message),
    listen: (receive) => worker.on('message', receive),
  }
}

/** Resolves with the port that a worker listens on; rejects if it exits before. */
async function listeningPort(worker: Worker | undefined): Promise<number> {
  if (!worker) throw new StartError('a worker could not start')
  const [address] = (await Promise.race([
    once(worker, 'listening'),
    once(worker, 'exit').then(() => Promise.reject(new StartError('a worker could not start'))),
  ])) as [{ port: number }]
  return address.port
}
