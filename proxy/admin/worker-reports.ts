import type { Worker } from 'node:cluster'
import type { Activity } from '../telemetry/metrics/activity.ts'
import { sumCounters, type MetricSnapshot } from '../telemetry/metrics/prometheus.ts'
import type { HealthReport } from './health.ts'
import type { AskWorkers, ClientsAnswer, ClientsQuestion } from './worker-clients.ts'

/** Questions of the primary process to a worker. */
type Reports = {
  readonly metrics: MetricSnapshot
  readonly health: HealthReport
  readonly activity: Activity
}
type Question = { readonly report: 'ask'; readonly id: number } & Asked
type Asked =
  { readonly what: keyof Reports } | { readonly what: 'clients'; readonly question: ClientsQuestion }
type Answer = { readonly report: 'answer'; readonly id: number } & (
  | { readonly what: 'metrics'; readonly value: MetricSnapshot }
  | { readonly what: 'health'; readonly value: HealthReport }
  | { readonly what: 'activity'; readonly value: Activity }
  | { readonly what: 'clients'; readonly value: ClientsAnswer }
)

/**
 * In a worker: answers its primary process.
 *
 * @param send a message to the primary process; must not throw when that is gone
 * @param listen to all messages of the primary process
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
}

/** In the primary process: asks the workers. */
export type WorkerReports = {
  /** To be called for each worker right after the fork. */
  add(worker: Worker): void
  /**
   * A snapshot for each worker, and one with what the workers of the past have counted, so that the sum never runs
   * backwards. A worker that does not answer in time is in it with its last answer.
   */
  readMetrics(): Promise<MetricSnapshot[]>
  /** Of the workers that answered in time. */
  readHealth(): Promise<HealthReport[]>
  /** Of the workers that answered in time. */
  readActivities(): Promise<Activity[]>
  readonly askClients: AskWorkers
}

/**
 * prom-client's own collection from workers is not used: one worker that ends or hangs while it is asked makes it fail
 * after five seconds, it keeps such a request for ever, and with a worker that is replaced its counters run backwards.
 *
 * @param timeoutMs for an answer
 */
export function createWorkerReports(timeoutMs: number): WorkerReports {
  const workers = new Set<Worker>()
  const open = new Map<number, OpenQuestion>()
  const snapshots = new Map<Worker, MetricSnapshot>()
  let ended: Promise<MetricSnapshot> = Promise.resolve([])
  let lastId = 0

  const receive = (worker: Worker, message: unknown): void => {
    if (!isAnswer(message) || !workers.has(worker)) return
    if (message.what === 'metrics') snapshots.set(worker, message.value)
    open.get(message.id)?.answered(worker, message)
  }

  const remove = (worker: Worker): void => {
    workers.delete(worker)
    const last = snapshots.get(worker)
    snapshots.delete(worker)
    if (last) ended = ended.then((sum) => sumCounters([sum, last]))
    for (const question of open.values()) question.leaves(worker)
  }

  const ask = (asked: Asked, whom: Iterable<Worker> = workers): Promise<Answer[]> =>
    new Promise((resolve) => {
      const id = ++lastId
      const waitingFor = new Set(whom)
      const answers: Answer[] = []
      const settle = (): void => {
        clearTimeout(timer)
        open.delete(id)
        resolve(answers)
      }
      const leaves = (worker: Worker): void => {
        if (waitingFor.delete(worker) && waitingFor.size === 0) settle()
      }
      const timer = setTimeout(settle, timeoutMs)
      open.set(id, {
        leaves,
        answered(worker, answer) {
          answers.push(answer)
          leaves(worker)
        },
      })
      if (waitingFor.size === 0) settle()
      const question: Question = { report: 'ask', id, ...asked }
      // A worker about to end has a closed channel already.
      for (const worker of [...waitingFor]) worker.send(question, (error) => error && leaves(worker))
    })

  return {
    add(worker) {
      workers.add(worker)
      worker.on('message', (message: unknown) => receive(worker, message))
      worker.once('exit', () => remove(worker))
    },
    async readMetrics() {
      await ask({ what: 'metrics' })
      const past = ended
      const present = [...snapshots.values()]
      return [...present, await past]
    },
    async readHealth() {
      const answers = await ask({ what: 'health' })
      return answers.flatMap((answer) => (answer.what === 'health' ? [answer.value] : []))
    },
    async readActivities() {
      const answers = await ask({ what: 'activity' })
      return answers.flatMap((answer) => (answer.what === 'activity' ? [answer.value] : []))
    },
    async askClients(question, whom) {
      const clientAnswers = async (asked?: Iterable<Worker>): Promise<ClientsAnswer[]> => {
        const answers = await ask({ what: 'clients', question }, asked)
        return answers.flatMap((answer) => (answer.what === 'clients' ? [answer.value] : []))
      }
      if (whom === 'all') return clientAnswers()
      for (const worker of [...workers]) {
        const answers = await clientAnswers([worker])
        if (answers.length > 0) return answers
      }
      return []
    },
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

function isAnswer(message: unknown): message is Answer {
  return typeof message === 'object' && message !== null && 'report' in message && message.report === 'answer'
}
