import { setImmediate } from 'node:timers/promises'
import { within } from '../../../shared/within.ts'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'

// The primary process keeps a copy of each list of addresses, of each GeoIP database, and of the certificate with its key. A worker that
// starts while the file has a mistake uses this copy, because there may be no other worker with a valid one.

export type KeptKind = 'list' | 'geoip' | 'tls'

/** The last valid content of a file. */
export type KeptFile = {
  /** The content, in the parts in which its reader keeps it. */
  readonly columns: readonly Buffer[]
  readonly about?: Readonly<Record<string, number>>
}

/** The question of a worker that cannot use a file. `id` is the number of the question among those of the worker. */
type Question = {
  readonly kept: 'ask'
  readonly id: number
  readonly kind: KeptKind
  readonly location: string
}
/** The answers to a worker: the columns in pieces, in base64, and then the end, which states whether a copy exists. */
type Answer = { readonly id: number } & (
  | { readonly kept: 'piece'; readonly column: number; readonly piece: string }
  | { readonly kept: 'end'; readonly isThere: boolean; readonly about?: KeptFile['about'] }
)

/** Resolves to undefined if the primary process has no such file. */
export type AskForKept = (kind: KeptKind, location: string) => Promise<KeptFile | undefined>

const PIECE_BYTES = 256 * 1024
const ANSWER_MS = 10_000

/** Answers the questions of a worker in the primary process; called right after the fork. */
export function serveKeptFiles(
  kind: KeptKind,
  readKept: (location: string) => KeptFile | undefined,
  port: LimiterPort,
): void {
  port.listen((message) => {
    if (!isMessage(message) || message.kept !== 'ask' || message.kind !== kind) return
    void send(message.id, readKept(message.location), port)
  })
}

/** Sends one piece per turn of the event loop, because without Redis this process also counts for its workers. */
async function send(id: number, kept: KeptFile | undefined, port: LimiterPort): Promise<void> {
  try {
    for (const [column, bytes] of (kept?.columns ?? []).entries())
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.toString('base64', at, at + PIECE_BYTES)
        port.send({ kept: 'piece', id, column, piece } satisfies Answer)
        await setImmediate()
      }
    const about = kept?.about && { about: kept.about }
    port.send({ kept: 'end', id, isThere: kept !== undefined, ...about } satisfies Answer)
  } catch {
    // The other process has exited.
  }
}

/** A requested file: the pieces of its columns that have arrived. An empty column has no pieces. */
type Asked = {
  readonly columns: (Buffer[] | undefined)[]
  readonly resolve: (file: KeptFile | undefined) => void
}

/**
 * Asks the primary process for the last valid content of files. The answer is undefined if the primary process has no copy, or has not sent
 * all of it within ten seconds. A question whose answer is pending is not sent again.
 */
export function createAskForKept(port: LimiterPort): AskForKept {
  /** Pending answers, by kind and location. */
  const pending = new Map<string, Promise<KeptFile | undefined>>()
  /**
   * Requested files, by the id of the question, so that a late answer is not mistaken for the answer to a later question about the same
   * file.
   */
  const asked = new Map<number, Asked>()
  let questions = 0
  let isListening = false

  function receive(message: unknown): void {
    if (!isMessage(message) || message.kept === 'ask') return
    const file = asked.get(message.id)
    if (message.kept === 'end') file?.resolve(message.isThere ? toKeptFile(file, message.about) : undefined)
    else if (file) (file.columns[message.column] ??= []).push(Buffer.from(message.piece, 'base64'))
  }

  return (kind, location) => {
    if (!isListening) port.listen(receive)
    isListening = true
    const name = `${kind} ${location}`
    const known = pending.get(name)
    if (known) return known
    const id = questions++
    const { promise, resolve } = Promise.withResolvers<KeptFile | undefined>()
    const answer = within(ANSWER_MS, promise)
      .catch(() => undefined)
      .finally(() => {
        asked.delete(id)
        pending.delete(name)
      })
    pending.set(name, answer)
    asked.set(id, { columns: [], resolve })
    try {
      port.send({ kept: 'ask', id, kind, location } satisfies Question)
    } catch {
      resolve(undefined)
    }
    return answer
  }
}

function toKeptFile({ columns }: Asked, about: KeptFile['about']): KeptFile {
  const joined = Array.from(columns, (pieces) => Buffer.concat(pieces ?? []))
  return { columns: joined, ...(about && { about }) }
}

function isMessage(message: unknown): message is Question | Answer {
  return typeof message === 'object' && message !== null && 'kept' in message
}
