import type { Worker } from 'node:cluster'
import { setImmediate } from 'node:timers/promises'
import { SettingsError } from '../../../shared/settings/settings.ts'
import { StartError } from '../../../shared/start-error.ts'
import { doAtOnce, doInTurns } from '../../../shared/steps.ts'
import type { TableChange } from '../../config/reload/table-change.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { reviseRules } from '../../limits/rules/continue-rules.ts'
import type { PreparedTable } from './reloader.ts'
import { readPieces, writePieces } from './settings-pieces.ts'

/** From a worker: it has started, has made what it needs of a table, cannot, or has it in force. */
type FromWorker =
  | { readonly table: 'ask' }
  | { readonly table: 'ready' | 'done'; readonly id: number }
  | {
      readonly table: 'failed'
      readonly id: number
      readonly reason: string
      /** In a file that only workers read. */
      readonly mistakes?: readonly string[]
    }
/**
 * To a worker: what it starts with, and a new table in two steps, so that all workers take it or none. The pieces of a table
 * come before; all pieces are in base64.
 */
type ToWorker =
  | { readonly table: 'start'; readonly pieces: readonly string[] }
  | { readonly table: 'piece'; readonly id: number; readonly piece: string }
  | {
      readonly table: 'prepare'
      readonly id: number
      readonly tableHash: string
      readonly revised: readonly string[]
    }
  | { readonly table: 'commit' | 'abort'; readonly id: number }

/** A worker that is starting answers when it has started. */
const READY_MS = 8_000
const DONE_MS = 2_000

export type WorkerTables = {
  /**
   * To be called for each worker right after the fork.
   *
   * @param started called when the worker asks what to start with: it gets the settings that are in force then
   */
  add(worker: Worker, started: () => GatewaySettings): void
  /**
   * Has all workers make what they need of a new table. Rejects where one cannot, and then none takes it.
   *
   * @param id greater than any before
   */
  prepare(change: TableChange, id: number): Promise<PreparedTable>
}

/** In the primary process. */
export function createWorkerTables(): WorkerTables {
  const started = new Set<Worker>()
  /** Who asks meanwhile is answered when the table has changed, or has not. */
  let changing: Promise<unknown> = Promise.resolve()

  /** Resolves when all have answered or are gone; rejects where one says that it cannot, or does not answer in time. */
  function ask(message: ToWorker & { readonly id: number }, limitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waitingFor = new Map<Worker, () => void>()
      const leave = (worker: Worker): void => {
        waitingFor.get(worker)?.()
        waitingFor.delete(worker)
        if (waitingFor.size > 0) return
        clearTimeout(timer)
        resolve()
      }
      const fail = (reason: Error): void => {
        clearTimeout(timer)
        for (const stop of waitingFor.values()) stop()
        reject(reason)
      }
      const timer = setTimeout(() => fail(new Error('a worker did not answer')), limitMs)
      for (const worker of started) {
        const receive = (answer: unknown): void => {
          if (!isFromWorker(answer) || !('id' in answer) || answer.id !== message.id) return
          if (answer.table === 'failed') fail(errorOf(answer))
          else leave(worker)
        }
        const gone = (): void => leave(worker)
        waitingFor.set(worker, () => void worker.off('message', receive).off('exit', gone))
        worker.on('message', receive).on('exit', gone)
      }
      if (started.size === 0) {
        clearTimeout(timer)
        resolve()
      }
      for (const worker of [...started]) worker.send(message, (error) => error && leave(worker))
    })
  }

  const tellAll = (message: ToWorker): void => {
    for (const worker of started) worker.send(message, () => undefined)
  }

  async function sendPieces(settings: GatewaySettings, id: number): Promise<void> {
    for (const piece of await doInTurns(writePieces(settings))) {
      tellAll({ table: 'piece', id, piece: Buffer.from(piece).toString('base64') })
      await setImmediate()
    }
  }

  async function prepare(change: TableChange, id: number): Promise<PreparedTable> {
    const { settings, tableHash, revised } = change
    let end = (): void => undefined
    changing = new Promise<void>((resolve) => (end = resolve))
    const abort = (): void => {
      tellAll({ table: 'abort', id })
      end()
    }
    try {
      await sendPieces(settings, id)
      await ask({ table: 'prepare', id, tableHash, revised }, READY_MS)
    } catch (error) {
      abort()
      throw error
    }
    return {
      // A worker that does not say so in time has heard of it all the same.
      commit: () =>
        ask({ table: 'commit', id }, DONE_MS)
          .catch(() => undefined)
          .finally(end),
      abort,
    }
  }

  return {
    add(worker, begin) {
      worker.on('message', (message: unknown) => {
        if (!isFromWorker(message) || message.table !== 'ask') return
        void changing.then(() => {
          if (worker.isDead()) return
          const pieces = doAtOnce(writePieces(begin())).map((piece) => Buffer.from(piece).toString('base64'))
          const answer: ToWorker = { table: 'start', pieces }
          started.add(worker)
          worker.send(answer, () => undefined)
        })
      })
      worker.once('exit', () => started.delete(worker))
    },
    prepare,
  }
}

/** In a worker: the settings that its primary process has. */
export async function askForSettings(): Promise<GatewaySettings> {
  return new Promise((resolve, reject) => {
    const receive = (message: unknown): void => {
      if (!isToWorker(message) || message.table !== 'start') return
      process.off('message', receive)
      resolve(doAtOnce(readPieces(message.pieces.map((piece) => Buffer.from(piece, 'base64')))))
    }
    // Listens from the start on, in order: messages that arrive before this worker serves are pending.
    process.on('message', (message: unknown) => {
      if (isToWorker(message) && message.table !== 'start') heard.push(message)
    })
    process.on('message', receive)
    const question: FromWorker = { table: 'ask' }
    process.send?.(question, (error: Error | null) => {
      if (error) reject(new StartError('the primary process is gone'))
    })
  })
}

type Change = Exclude<ToWorker, { table: 'start' }>

/** Changes in the order in which they came. */
const heard = {
  waiting: [] as Change[],
  receive: undefined as ((change: Change) => void) | undefined,
  push(change: Change): void {
    if (this.receive) this.receive(change)
    else this.waiting.push(change)
  },
}

/**
 * In a worker: takes the tables of its primary process.
 *
 * @param running the settings that it has started with
 * @param prepare as `prepare` of `Serving`
 */
export function takeTables(
  running: GatewaySettings,
  prepare: (next: GatewaySettings, tableHash: string) => Promise<PreparedTable>,
): void {
  let inForce = running
  let pieces: Buffer[] = []
  let prepared:
    { readonly id: number; readonly settings: GatewaySettings; readonly table: PreparedTable } | undefined
  const answer = (message: FromWorker): void => {
    if (process.connected) process.send?.(message, () => undefined)
  }

  async function take(change: Change): Promise<void> {
    const { id } = change
    if (change.table === 'piece') return void pieces.push(Buffer.from(change.piece, 'base64'))
    const given = pieces
    pieces = []
    if (change.table === 'prepare') {
      try {
        const next = await doInTurns(readPieces(given))
        const rules = await doInTurns(reviseRules(inForce.rules, next.rules, change.revised, id))
        const settings = { ...next, rules }
        prepared = { id, settings, table: await prepare(settings, change.tableHash) }
        answer({ table: 'ready', id })
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        const mistakes = error instanceof SettingsError && { mistakes: error.problems }
        answer({ table: 'failed', id, reason, ...mistakes })
      }
      return
    }
    const ready = prepared
    prepared = undefined
    if (change.table === 'abort' || ready?.id !== id) return ready?.table.abort()
    inForce = ready.settings
    await ready.table.commit()
    answer({ table: 'done', id })
  }

  let last: Promise<void> = Promise.resolve()
  heard.receive = (change) => void (last = last.then(() => take(change)))
  for (const change of heard.waiting.splice(0)) heard.receive(change)
}

function errorOf({ reason, mistakes }: FromWorker & { readonly table: 'failed' }): Error {
  return mistakes ? new SettingsError(mistakes) : new Error(reason)
}

function isFromWorker(message: unknown): message is FromWorker {
  return typeof message === 'object' && message !== null && 'table' in message
}

function isToWorker(message: unknown): message is ToWorker {
  return typeof message === 'object' && message !== null && 'table' in message
}
