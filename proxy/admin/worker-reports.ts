import type { Worker } from 'node:cluster'
import type { Activities, Activity } from '../telemetry/metrics/activity.ts'
import { describeUnresponsiveWorkers } from '../telemetry/metrics/metrics.ts'
import { sumCounters, type MetricSnapshot } from '../telemetry/metrics/prometheus.ts'
import type { HealthReport } from './health.ts'
import type { AskWorkers, ClientsAnswer, ClientsQuestion } from './worker-clients.ts'

/** The reports that the primary process can request from a worker. */
type Reports = {
  readonly metrics: MetricSnapshot
  readonly health: HealthReport
  readonly activity: Activity
}
type Question = { readonly report: 'ask'; readonly id: number } & Asked
type Asked =
  | { readonly what: keyof Reports }
  | { readonly what: 'clients'; readonly question: ClientsQuestion }
/** A worker's message that it answers from now on. */
type Hello = { readonly report: 'hello' }
type Answer = { readonly report: 'answer'; readonly id: number } & (
  | { readonly what: 'metrics'; readonly value: MetricSnapshot }
  | { readonly what: 'health'; readonly value: HealthReport }
  | { readonly what: 'activity'; readonly value: Activity }
  | { readonly what: 'clients'; readonly value: ClientsAnswer }
)

/**
 * Answers the primary process in a worker.
 *
 * @param send sends a message to the primary process; must not throw if that has exited
 * @param listen listens to all messages of the primary process
 */
export function answerReports(options: {
  readonly send: (message: object) => void
  readonly listen: (receive: (message: unknown) => void) => void
  readonly takeSnapshot: () => Promise<MetricSnapshot>
  readonly readHealth: () => HealthReport
  readonly readActivity: () => Activity
  readonly answerClients: (question: ClientsQuestion) => Promise<ClientsAnswer>
}): void {
  const { send, listen, takeSnapshot, readHealth, readActivity, answerClients } = options
  const answer = (message: Answer): void => send(message)
  listen((message) => {
    if (!isQuestion(message)) return
    const { id, what } = message
    if (what === 'health') answer({ report: 'answer', id, what, value: readHealth() })
    else if (what === 'activity') answer({ report: 'answer', id, what, value: readActivity() })
    else if (what === 'clients') {
      void answerClients(message.question).then((value) => answer({ report: 'answer', id, what, value }))
    } else void takeSnapshot().then((value) => answer({ report: 'answer', id, what, value }))
  })
  const hello: Hello = { report: 'hello' }
  send(hello)
}

/**
 * Asks the workers that answer already, in the primary process.
 *
 * Replaces prom-client's own collection from workers. That fails after five seconds if a worker exits or hangs during a request, keeps such
 * a request forever, and its counters decrease when a worker is replaced.
 */
export class WorkerReports {
  readonly #timeoutMs: number
  /** The workers that answer. A question to a worker that is starting would be lost. */
  readonly #workers = new Set<Worker>()
  /** Unanswered questions, by their ids. */
  readonly #open = new Map<number, OpenQuestion>()
  /** The last snapshot of each worker. */
  readonly #snapshots = new Map<Worker, MetricSnapshot>()
  /** The last activity of each worker. */
  readonly #activities = new Map<Worker, Activity>()
  /** The sum of the last snapshots of workers that have exited. */
  #ended: Promise<MetricSnapshot> = Promise.resolve([])
  #lastId = 0
  /** The read in progress. */
  #health: Promise<HealthReport[]> | undefined

  /** @param timeoutMs milliseconds to wait for an answer */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** Call this for each worker right after the fork. */
  add(worker: Worker): void {
    const receive = (message: unknown): void => this.#receive(worker, message)
    worker.on('message', receive)
    worker.once('exit', () => {
      // Messages may still arrive after the exit.
      worker.off('message', receive)
      this.#remove(worker)
    })
  }

  /**
   * Reads a snapshot for each worker, and one with the counters of workers that have exited, so that the sum never decreases. For a worker
   * that does not answer in time, returns its last snapshot. A further snapshot says how many workers these are.
   */
  async readMetrics(): Promise<MetricSnapshot[]> {
    const asked = [...this.#workers]
    const answers = await this.#ask({ what: 'metrics' })
    const past = this.#ended
    const present = [...this.#snapshots.values()]
    const running = asked.filter((worker) => this.#workers.has(worker))
    // A worker may have exited after its answer.
    const unresponsive = Math.max(0, running.length - answers.length)
    return [...present, [describeUnresponsiveWorkers(unresponsive)], await past]
  }

  /**
   * Reads the health of the workers that answered in time. Once one is ready, the others have half of the time: probes often wait for no
   * more than a second, and one worker that hangs must not take the others out of use. Calls during a read get its result: everybody may
   * ask for `/readyz`, as often as they can write it, and must not keep the workers busy.
   */
  readHealth(): Promise<HealthReport[]> {
    return (this.#health ??= this.#readHealth().finally(() => (this.#health = undefined)))
  }

  async #readHealth(): Promise<HealthReport[]> {
    const answers = await this.#ask({ what: 'health' }, { isEnough: isReady })
    return answers.flatMap((answer) => (answer.what === 'health' ? [answer.value] : []))
  }

  /** Reads the activity of each worker. For a worker that does not answer in time, this is its last one. */
  async readActivities(): Promise<Activities> {
    const answers = await this.#ask({ what: 'activity' })
    return { all: [...this.#activities.values()], answered: answers.length }
  }

  readonly askClients: AskWorkers = async (question, recipients) => {
    if (recipients === 'all') return this.#answersAboutClients(question)
    for (const worker of [...this.#workers]) {
      const answers = await this.#answersAboutClients(question, [worker])
      if (answers.length > 0) return answers
    }
    return []
  }

  async #answersAboutClients(
    question: ClientsQuestion,
    recipients?: Iterable<Worker>,
  ): Promise<ClientsAnswer[]> {
    const answers = await this.#ask({ what: 'clients', question }, { recipients })
    return answers.flatMap((answer) => (answer.what === 'clients' ? [answer.value] : []))
  }

  #receive(worker: Worker, message: unknown): void {
    if (isHello(message)) this.#workers.add(worker)
    if (!isAnswer(message)) return
    if (message.what === 'metrics') this.#snapshots.set(worker, message.value)
    else if (message.what === 'activity') this.#activities.set(worker, message.value)
    this.#open.get(message.id)?.answered(worker, message)
  }

  #remove(worker: Worker): void {
    this.#workers.delete(worker)
    const last = this.#snapshots.get(worker)
    this.#snapshots.delete(worker)
    this.#activities.delete(worker)
    if (last) this.#ended = this.#ended.then((sum) => sumCounters([sum, last]))
    for (const question of this.#open.values()) question.leaves(worker)
  }

  /**
   * Resolves with the answers that arrive in time.
   *
   * @param options.isEnough an answer with which, after half of the time, the others are no longer waited for
   */
  #ask(
    asked: Asked,
    {
      recipients = this.#workers,
      isEnough = () => false,
    }: {
      readonly recipients?: Iterable<Worker> | undefined
      readonly isEnough?: (answer: Answer) => boolean
    } = {},
  ): Promise<Answer[]> {
    return new Promise((resolve) => {
      const id = ++this.#lastId
      const waitingFor = new Set(recipients)
      const answers: Answer[] = []
      let isLate = false
      const settle = (): void => {
        clearTimeout(halfTime)
        clearTimeout(timer)
        this.#open.delete(id)
        resolve(answers)
      }
      const leaves = (worker: Worker): void => {
        if (waitingFor.delete(worker) && waitingFor.size === 0) settle()
      }
      const halfTime = setTimeout(() => {
        isLate = true
        if (answers.some(isEnough)) settle()
      }, this.#timeoutMs / 2)
      const timer = setTimeout(settle, this.#timeoutMs)
      this.#open.set(id, {
        leaves,
        answered(worker, answer) {
          answers.push(answer)
          if (isLate && isEnough(answer)) settle()
          else leaves(worker)
        },
      })
      if (waitingFor.size === 0) settle()
      const question: Question = { report: 'ask', id, ...asked }
      // The channel of a worker that is about to exit may be closed already.
      for (const worker of [...waitingFor]) worker.send(question, (error) => error && leaves(worker))
    })
  }
}

type OpenQuestion = {
  answered(worker: Worker, answer: Answer): void
  /** The worker will report nothing more. */
  leaves(worker: Worker): void
}

function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'report' in message && message.report === 'ask'
}

function isHello(message: unknown): message is Hello {
  return typeof message === 'object' && message !== null && 'report' in message && message.report === 'hello'
}

function isReady(answer: Answer): boolean {
  return answer.what === 'health' && answer.value.status === 'ready'
}

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'report' in message && message.report === 'answer'
}
