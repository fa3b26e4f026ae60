import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { StartError } from '../../../shared/start-error.ts'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Listening } from '../serving/serving.ts'

/** Delay before an exited worker is restarted, so that one that fails at its start does not keep the machine busy. */
const RESTART_DELAY_MS = 1_000
/** How often a worker that is killed before it listens is started again at the start of the gateway. */
const MAX_FIRST_RESTARTS = 3
/** The variable that tells a worker the id of its gateway among the replicas. */
export const GATEWAY_ID = 'GATEWAY_ID'
/** The variable that tells a worker its number, from 0. A worker that is restarted has the number of the one before. */
export const WORKER_NUMBER = 'WORKER_NUMBER'

type WorkerOptions = {
  readonly settings: GatewaySettings
  /** The same for all. */
  readonly gatewayId: string
  /** Whether to restart a worker that exits. */
  readonly isServing: () => boolean
  /** Called with each that is started; returns what to do once it has exited. */
  readonly onStart: (worker: Worker) => () => void
  readonly log: Log
}

/** The worker processes of this primary process. */
export class WorkerProcesses {
  readonly #options: WorkerOptions
  /** By number, the worker that was started last before `isServing` was true. */
  #first: (Worker | undefined)[] = []
  #isStopping = false

  constructor(options: WorkerOptions) {
    this.#options = options
  }

  /**
   * Starts as many workers as the settings say, and from then on restarts those that exit.
   *
   * @returns where they listen; rejects with `StartError` if one of them exits instead, unless it was killed
   */
  async start(): Promise<Ports | undefined> {
    // Workers that take connections from one socket of the kernel's, instead of each being handed over by this process.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    const numbers = Array.from({ length: this.#options.settings.workers }, (_, number) => number)
    const [ports] = await Promise.all(numbers.map((number) => this.#startFirst(number)))
    return ports
  }

  /** Restarts those that exited before `isServing` was true. */
  restartDead(): void {
    for (const [number, worker] of this.#first.entries()) if (worker?.isDead()) this.#startLater(number)
    this.#first = []
  }

  /** Ends all, in order, and waits for their exits. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(
      listWorkers().map(async (worker) => {
        // Listed until its channel is closed, too.
        if (worker.isDead()) return
        const exit = once(worker, 'exit')
        worker.process.kill('SIGTERM')
        await exit
      }),
    )
  }

  async #startFirst(number: number): Promise<Ports> {
    const { settings, log } = this.#options
    for (let restarts = 0; ; restarts++) {
      const worker = this.#start(number)
      this.#first[number] = worker
      const found = await listeningPorts(worker, settings)
      if ('port' in found) return found
      // A worker that exits by itself has said why it cannot start.
      const isFinal = found.signal === null || restarts === MAX_FIRST_RESTARTS
      if (!isFinal && !this.#isStopping) {
        log.error({ worker: worker?.process.pid, ...found }, RESTARTING)
        await sleep(RESTART_DELAY_MS, undefined, { ref: false })
      }
      if (isFinal || this.#isStopping) throw new StartError(CANNOT_START)
    }
  }

  #startLater(number: number): void {
    setTimeout(() => this.#options.isServing() && this.#start(number), RESTART_DELAY_MS)
  }

  #start(number: number): Worker | undefined {
    const { gatewayId, isServing, onStart, log } = this.#options
    const worker = fork({ [GATEWAY_ID]: gatewayId, [WORKER_NUMBER]: String(number) }, log)
    if (!worker) {
      this.#startLater(number)
      return undefined
    }
    const onExit = onStart(worker)
    worker.on('exit', (code, signal) => {
      onExit()
      if (!isServing()) return
      log.error({ worker: worker.process.pid, code, signal }, RESTARTING)
      this.#startLater(number)
    })
    return worker
  }
}

const RESTARTING = 'worker exited; restarting'

/** The running workers. */
export function listWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}

/** A worker's channel to its primary process. */
export const portToPrimary: LimiterPort = {
  send: (message) => process.send?.(message),
  listen: (receive) => process.on('message', receive),
}

/** The channel of the primary process to a worker. To send may throw if the worker has gone. */
export function portTo(worker: Worker): LimiterPort {
  return {
    send: (message) => worker.send(message),
    listen: (receive) => worker.on('message', receive),
  }
}

/** Returns undefined if the machine has no processes, files or memory left, which is logged. */
function fork(variables: Readonly<Record<string, string>>, log: Log): Worker | undefined {
  const fail = (err: unknown): void => log.error({ err }, 'cannot start a worker')
  try {
    const worker = cluster.fork(variables)
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

const CANNOT_START = 'a worker could not start'

type Ports = Omit<Listening, 'adminPort'>
type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** Resolves with the ports that a worker listens on, or with how it exited before. */
async function listeningPorts(
  worker: Worker | undefined,
  { decisionsPort }: GatewaySettings,
): Promise<Ports | Exit> {
  if (!worker) throw new StartError(CANNOT_START)
  return new Promise((resolve) => {
    const ports: number[] = []
    worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => resolve({ code, signal }))
    worker.on('listening', ({ port }: { readonly port: number }) => {
      ports.push(port)
      // The clients' port is the last that a worker opens.
      if (decisionsPort === undefined) resolve({ port })
      else if (ports[0] !== undefined && ports.length > 1) resolve({ port, decisionsPort: ports[0] })
    })
  })
}
