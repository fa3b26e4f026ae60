import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Log } from '../../../shared/log.ts'
import { StartError } from '../../../shared/start-error.ts'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Listening } from '../serving/serving.ts'

/** Delay before an exited worker is restarted, so that one that fails at its start does not keep the machine busy. */
const RESTART_DELAY_MS = 1_000
/** The variable that tells a worker the id of its gateway among the replicas. */
export const GATEWAY_ID = 'GATEWAY_ID'

/** The worker processes of this primary process. */
export type WorkerProcesses = {
  /**
   * Starts as many as the settings say, and from then on those that exit once more.
   *
   * @returns where they listen; rejects with `StartError` where one of them exits instead
   */
  start(): Promise<Omit<Listening, 'adminPort'> | undefined>
  /** Restarts those that exited before `isServing` was true. */
  restartDead(): void
  /** Ends all, in order, and waits for their exits. */
  stop(): Promise<void>
}

/**
 * @param options.gatewayId the same for all
 * @param options.isServing whether to restart a worker that exits
 * @param options.onStart called with each that is started; returns what to do once it has exited
 */
export function createWorkerProcesses(options: {
  readonly settings: GatewaySettings
  readonly gatewayId: string
  readonly isServing: () => boolean
  readonly onStart: (worker: Worker) => () => void
  readonly log: Log
}): WorkerProcesses {
  const { settings, gatewayId, isServing, onStart, log } = options
  let first: readonly (Worker | undefined)[] = []

  function startLater(): void {
    setTimeout(() => isServing() && start(), RESTART_DELAY_MS)
  }

  function start(): Worker | undefined {
    const worker = fork(gatewayId, log)
    if (!worker) {
      startLater()
      return undefined
    }
    const onExit = onStart(worker)
    worker.on('exit', (code, signal) => {
      onExit()
      if (!isServing()) return
      log.error({ worker: worker.process.pid, code, signal }, 'worker exited; restarting')
      startLater()
    })
    return worker
  }

  return {
    async start() {
      // Workers that take connections from one socket of the kernel's, instead of each being handed over by this process.
      cluster.schedulingPolicy = cluster.SCHED_NONE
      first = Array.from({ length: settings.workers }, start)
      const [ports] = await Promise.all(first.map((worker) => listeningPorts(worker, settings)))
      return ports
    },
    restartDead() {
      for (const worker of first) if (worker?.isDead()) startLater()
      first = []
    },
    async stop() {
      await Promise.all(
        listWorkers().map(async (worker) => {
          const exit = once(worker, 'exit')
          worker.process.kill('SIGTERM')
          await exit
        }),
      )
    },
  }
}

/** The running workers. */
export function listWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}

/** In a worker: how it talks with its primary process. */
export const portToPrimary: LimiterPort = {
  send: (message) => process.send?.(message),
  listen: (receive) => process.on('message', receive),
}

export function portTo(worker: Worker): LimiterPort {
  return {
    send: (message) => worker.send(message),
    listen: (receive) => worker.on('message', receive),
  }
}

/** Undefined if the machine has no processes, files or memory left, which is logged. */
function fork(gatewayId: string, log: Log): Worker | undefined {
  const fail = (err: unknown): void => log.error({ err }, 'cannot start a worker')
  try {
    const worker = cluster.fork({ [GATEWAY_ID]: gatewayId })
    const isStarted = worker.process.pid !== undefined
    // For a running worker it is an error of the IPC channel: the worker is about to exit, which has its own event.
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

/** Resolves with the ports that a worker listens on; rejects if it exits before. */
async function listeningPorts(
  worker: Worker | undefined,
  { decisionsPort }: GatewaySettings,
): Promise<Omit<Listening, 'adminPort'>> {
  if (!worker) throw new StartError('a worker could not start')
  return new Promise((resolve, reject) => {
    const ports: number[] = []
    worker.once('exit', () => reject(new StartError('a worker could not start')))
    worker.on('listening', ({ port }: { readonly port: number }) => {
      ports.push(port)
      // The clients' port is the last that a worker opens.
      if (decisionsPort === undefined) resolve({ port })
      else if (ports[0] !== undefined && ports.length > 1) resolve({ port, decisionsPort: ports[0] })
    })
  })
}
