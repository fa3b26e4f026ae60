import type { Worker } from 'node:cluster'
import { setImmediate } from 'node:timers/promises'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { doAtOnce, doInTurns } from '../../../shared/steps.ts'
import type { TableChange } from '../../config/reload/table-change.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { PreparedTable } from './reloader.ts'
import { writePieces } from './settings-pieces.ts'
import { isFromWorker, type FromWorker, type ToWorker } from './table-messages.ts'

/** Time for a worker to prepare a table. A worker that is starting answers once it has started. */
const READY_MS = 8_000
const DONE_MS = 2_000

/** In the primary process, applies a new table in all workers or in none. */
export class PrimaryTables {
  readonly #started = new Set<Worker>()
  /** The change in progress. A worker that asks during a change is answered afterwards. */
  #changing: Promise<unknown> = Promise.resolve()

  /** The workers that have asked for their first settings. A signal would end one that has not. */
  get started(): ReadonlySet<Worker> {
    return this.#started
  }

  /**
   * Call this for each worker right after the fork.
   *
   * @param started called when the worker asks for its first settings; returns the current settings
   */
  add(worker: Worker, started: () => GatewaySettings): void {
    worker.on('message', (message: unknown) => {
      if (!isFromWorker(message) || message.table !== 'ask') return
      void this.#changing.then(() => {
        if (worker.isDead()) return
        const pieces = doAtOnce(writePieces(started())).map((piece) => Buffer.from(piece).toString('base64'))
        const answer: ToWorker = { table: 'start', pieces }
        this.#started.add(worker)
        worker.send(answer, () => undefined)
      })
    })
    worker.once('exit', () => this.#started.delete(worker))
  }

  /**
   * Makes all workers prepare a new table. Rejects if a worker cannot; then no worker applies the table.
   *
   * @param id a number greater than all previous ids
   */
  async prepare(change: TableChange, id: number): Promise<PreparedTable> {
    const { settings, tableHash, revised } = change
    let end = (): void => undefined
    this.#changing = new Promise<void>((resolve) => (end = resolve))
    const abort = (): void => {
      this.#sendToAll({ table: 'abort', id })
      end()
    }
    try {
      await this.#sendPieces(settings, id)
      await this.#ask({ table: 'prepare', id, tableHash, revised }, READY_MS)
    } catch (error) {
      abort()
      throw error
    }
    return {
      // A worker that does not confirm the commit in time has received it nevertheless.
      commit: () =>
        this.#ask({ table: 'commit', id }, DONE_MS)
          .catch(() => undefined)
          .finally(end),
      abort,
    }
  }

  #sendToAll(message: ToWorker): void {
    for (const worker of this.#started) worker.send(message, () => undefined)
  }

  async #sendPieces(settings: GatewaySettings, id: number): Promise<void> {
    for (const piece of await doInTurns(writePieces(settings))) {
      this.#sendToAll({ table: 'piece', id, piece: Buffer.from(piece).toString('base64') })
      await setImmediate()
    }
  }

  /** Resolves when every worker has answered or exited. Rejects if a worker fails or does not answer in time. */
  #ask(message: ToWorker & { readonly id: number }, limitMs: number): Promise<void> {
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
      for (const worker of this.#started) {
        const receive = (answer: unknown): void => {
          if (!isFromWorker(answer) || !('id' in answer) || answer.id !== message.id) return
          if (answer.table === 'failed') fail(errorOf(answer))
          else leave(worker)
        }
        const gone = (): void => leave(worker)
        waitingFor.set(worker, () => void worker.off('message', receive).off('exit', gone))
        worker.on('message', receive).on('exit', gone)
      }
      if (this.#started.size === 0) {
        clearTimeout(timer)
        resolve()
      }
      for (const worker of [...this.#started]) worker.send(message, (error) => error && leave(worker))
    })
  }
}

function errorOf({ reason, mistakes }: FromWorker & { readonly table: 'failed' }): Error {
  return mistakes ? new SettingsError(mistakes) : new Error(reason)
}
