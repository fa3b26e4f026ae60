import cluster, { type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { StartError } from '../../../shared/start-error.ts'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Listening } from '../serving/serving.ts'

/** Delay before an exited worker is restarted, so that a worker that fails at its start does not keep the machine busy. */
const RESTART_DELAY_MS = 1_000
/** How long a worker may take to exit after `SHUTDOWN_DELAY` and `SHUTDOWN_GRACE`, for example to send its last spans. */
const EXIT_MS = 5_000
/** Maximum number of restarts, at the start of the gateway, of a worker that is killed before it listens. */
const MAX_FIRST_RESTARTS = 3
/** The environment variable that contains the id of a worker's gateway among the replicas. */
export const GATEWAY_ID = 'GATEWAY_ID'
/** The environment variable that contains the number of a worker, from 0. A worker that replaces another has the same number. */
export const WORKER_NUMBER = 'WORKER_NUMBER'

type WorkerOptions = {
  readonly settings: GatewaySettings
  /** The id of the gateway, the same for all workers. */
  readonly gatewayId: string
  /** Whether to restart a worker that exits. */
  readonly isServing: () => boolean
  /** Called with each started worker. Returns a function to call when the worker has exited. */
  readonly onStart: (worker: Worker) => () => void
  readonly log: Log
}

/** The worker processes of this primary process. */
export class WorkerProcesses {
  readonly #options: WorkerOptions
  /** The worker that was started last before `isServing` was true, by number. */
  #first: (Worker | undefined)[] = []
  #isStopping = false

  constructor(options: WorkerOptions) {
    this.#options = options
  }

  /**
   * Starts as many workers as the settings say, and from then on restarts workers that exit.
   *
   * @returns the ports that the workers listen on. Rejects with `StartError` if a worker exits before it listens, unless it was killed
   */
  async start(): Promise<Ports | undefined> {
    // Workers accept connections from a shared socket. Otherwise this process would accept each connection and hand it over.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    const numbers = Array.from({ length: this.#options.settings.workers }, (_, number) => number)
    const [ports] = await Promise.all(numbers.map((number) => this.#startFirst(number)))
    return ports
  }

  /** Restarts workers that exited before `isServing` was true. */
  restartDead(): void {
    for (const [number, worker] of this.#first.entries()) if (worker?.isDead()) this.#startLater(number)
    this.#first = []
  }

  /** Stops all workers gracefully, and waits for their exits. Kills a worker that hangs, which would keep the port and its connections. */
  async stop(): Promise<void> {
    const { settings, log } = this.#options
    this.#isStopping = true
    await Promise.all(
      listWorkers().map(async (worker) => {
        // An exited worker is listed until its channel is closed.
        if (worker.isDead()) return
        // `events.once` would also reject for an 'error', which a worker emits if a message is sent after it has closed its channel.
        const exit = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
        worker.process.kill('SIGTERM')
        const timer = setTimeout(
          () => {
            log.error({ worker: worker.process.pid }, 'worker does not stop; killing it')
            worker.process.kill('SIGKILL')
          },
          settings.shutdownDelayMs + settings.shutdownGraceMs + EXIT_MS,
        )
        await exit
        clearTimeout(timer)
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
      // A worker that exits by itself has already reported why it cannot start.
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

/** Lists the running workers. */
export function listWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
}

/** A worker's channel to its primary process. */
export const portToPrimary: LimiterPort = {
  send: (message) => process.send?.(message),
  listen: (receive) => process.on('message', receive),
}

/** Returns the channel of the primary process to a worker. `send` may throw if the worker has exited. */
export function portTo(worker: Worker): LimiterPort {
  return {
    send: (message) => worker.send(message),
    listen: (receive) => worker.on('message', receive),
  }
}

/** Forks a worker. Returns undefined, and logs an error, if the machine has run out of processes, files or memory. */
function fork(variables: Readonly<Record<string, string>>, log: Log): Worker | undefined {
  const fail = (err: unknown): void => log.error({ err }, 'cannot start a worker')
  try {
    const worker = cluster.fork(variables)
    const isStarted = worker.process.pid !== undefined
    // The error of a running worker is about its IPC channel. The worker is about to exit, which has its own event.
    worker.on('error', (err) =>
      isStarted ? log.debug({ err }, 'cannot send a message to a worker') : fail(err),
    )
    if (isStarted) return worker
    // The worker will never emit `exit`, so nothing must wait for that.
    delete cluster.workers?.[worker.id]
  } catch (error) {
    fail(error)
  }
  return undefined
}

const CANNOT_START = 'a worker could not start'

type Ports = Omit<Listening, 'adminPort'>
type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** Resolves with the ports that a worker listens on, or with its exit if it exits before. */
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
      // A worker opens the clients' port last.
      if (decisionsPort === undefined) resolve({ port })
      else if (ports[0] !== undefined && ports.length > 1) resolve({ port, decisionsPort: ports[0] })
    })
  })
}
