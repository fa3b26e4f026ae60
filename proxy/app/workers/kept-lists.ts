import { setImmediate } from 'node:timers/promises'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'
import { columnsOf, dataOfColumns } from '../../request/addresses/lists/range-columns.ts'
import type { KeptList } from '../addresses/live-lists.ts'

// The primary process keeps a copy of each list of addresses. A worker that starts while the file has a mistake takes the list from it, as
// there may be no other worker that has it.

/** From a worker, whose file cannot be used. */
type Question = { readonly list: 'ask'; readonly location: string }
/** To it: the columns of the list in pieces, in base64; then how many entries it has, or none of both. */
type Answer =
  | { readonly list: 'piece'; readonly location: string; readonly column: number; readonly piece: string }
  | { readonly list: 'end'; readonly location: string; readonly entries?: number; readonly readAtMs?: number }

const PIECE_BYTES = 256 * 1024
const ANSWER_MS = 10_000

/** In the primary process, for each worker right after the fork. */
export function serveKeptLists(
  readKept: (location: string) => KeptList | undefined,
  port: LimiterPort,
): void {
  port.listen((message) => {
    if (!isMessage(message) || message.list !== 'ask') return
    void send(readKept(message.location), message.location, port)
  })
}

/** In turns: without Redis this process counts for its workers meanwhile. */
async function send(kept: KeptList | undefined, location: string, port: LimiterPort): Promise<void> {
  try {
    // A list that is read again while it is sent gives its memory back.
    const columns = kept ? columnsOf(kept.data).map((column) => Buffer.from(column)) : []
    for (const [column, bytes] of columns.entries())
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.toString('base64', at, at + PIECE_BYTES)
        port.send({ list: 'piece', location, column, piece } satisfies Answer)
        await setImmediate()
      }
    const end = kept && { entries: kept.entries, readAtMs: kept.readAtMs }
    port.send({ list: 'end', location, ...end } satisfies Answer)
  } catch {
    // The other process is gone.
  }
}

/** In a worker: the list of a file as it was when it could last be used; undefined where its primary process has none. */
export async function askForKeptList(port: LimiterPort, location: string): Promise<KeptList | undefined> {
  const columns: Buffer[][] = Array.from({ length: 7 }, () => [])
  let limit: NodeJS.Timeout | undefined
  const answer = new Promise<KeptList | undefined>((resolve) => {
    limit = setTimeout(() => resolve(undefined), ANSWER_MS)
    port.listen((message) => {
      if (!isMessage(message) || message.location !== location) return
      if (message.list === 'piece') columns[message.column]?.push(Buffer.from(message.piece, 'base64'))
      if (message.list !== 'end') return
      const { entries, readAtMs = 0 } = message
      resolve(entries === undefined ? undefined : { data: dataOfColumns(columns), entries, readAtMs })
    })
    port.send({ list: 'ask', location } satisfies Question)
  })
  return answer.finally(() => clearTimeout(limit))
}

function isMessage(message: unknown): message is Question | Answer {
  return typeof message === 'object' && message !== null && 'list' in message
}
