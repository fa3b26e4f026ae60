import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { StartError } from '../../../shared/start-error.ts'
import { doAtOnce, doInTurns } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { reviseRules } from '../../limits/rules/continue-rules.ts'
import type { PreparedTable } from './reloader.ts'
import { readPieces } from './settings-pieces.ts'
import { isToWorker, type FromWorker, type ToWorker } from './table-messages.ts'

/** Asks the primary process for its settings, in a worker. */
export async function askForSettings(): Promise<GatewaySettings> {
  return new Promise((resolve, reject) => {
    const receive = (message: unknown): void => {
      if (!isToWorker(message) || message.table !== 'start') return
      process.off('message', receive)
      resolve(doAtOnce(readPieces(message.pieces.map((piece) => Buffer.from(piece, 'base64')))))
    }
    // Queue changes from the start, in order, until this worker can apply them.
    process.on('message', (message: unknown) => {
      if (isToWorker(message) && message.table !== 'start') inbox.push(message)
    })
    process.on('message', receive)
    const question: FromWorker = { table: 'ask' }
    process.send?.(question, (error: Error | null) => {
      if (error) reject(new StartError('the primary process is gone'))
    })
  })
}

type Change = Exclude<ToWorker, { table: 'start' }>

/** Changes, in the order of their arrival. */
const inbox = {
  waiting: [] as Change[],
  receive: undefined as ((change: Change) => void) | undefined,
  push(change: Change): void {
    if (this.receive) this.receive(change)
    else this.waiting.push(change)
  },
}

/**
 * Applies the tables of the primary process in a worker.
 *
 * @param running the settings with which the worker started
 * @param prepare prepares a table, like `Serving.prepare`
 */
export function takeTables(
  running: GatewaySettings,
  prepare: (next: GatewaySettings, tableHash: string) => Promise<PreparedTable>,
): void {
  let active = running
  let pieces: Buffer[] = []
  let prepared:
    | { readonly id: number; readonly settings: GatewaySettings; readonly table: PreparedTable }
    | undefined
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
        const rules = await doInTurns(reviseRules(active.rules, next.rules, change.revised, id))
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
    active = ready.settings
    await ready.table.commit()
    answer({ table: 'done', id })
  }

  let last: Promise<void> = Promise.resolve()
  inbox.receive = (change) => void (last = last.then(() => take(change)))
  for (const change of inbox.waiting.splice(0)) inbox.receive(change)
}
