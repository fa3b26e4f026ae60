import { setImmediate } from 'node:timers/promises'
import type { LimiterPort } from '../../limits/store/workers/worker-messages.ts'

// The primary process keeps a copy of each list of addresses and of each GeoIP database. A worker that starts while the file has a mistake
// takes the copy, as there may be no other worker that has it.

export type KeptKind = 'list' | 'geoip'

/** The content of a file when it could last be used. */
export type KeptFile = {
  /** In the parts in which its reader keeps it. */
  readonly columns: readonly Buffer[]
  readonly about?: Readonly<Record<string, number>>
}

/** From a worker, whose file cannot be used. */
type Question = { readonly kept: 'ask'; readonly kind: KeptKind; readonly location: string }
/** To it: the columns in pieces, in base64, and then the end, which says whether there is such a file. */
type Answer = { readonly kind: KeptKind; readonly location: string } & (
  | { readonly kept: 'piece'; readonly column: number; readonly piece: string }
  | { readonly kept: 'end'; readonly isThere: boolean; readonly about?: KeptFile['about'] }
)

/** Undefined where the primary process has no such file. */
export type AskForKept = (kind: KeptKind, location: string) => Promise<KeptFile | undefined>

const PIECE_BYTES = 256 * 1024
const ANSWER_MS = 10_000

/** In the primary process, for each worker right after the fork. */
export function serveKeptFiles(
  kind: KeptKind,
  readKept: (location: string) => KeptFile | undefined,
  port: LimiterPort,
): void {
  port.listen((message) => {
    if (!isMessage(message) || message.kept !== 'ask' || message.kind !== kind) return
    void send(kind, readKept(message.location), message.location, port)
  })
}

/** In turns: without Redis this process counts for its workers meanwhile. */
async function send(
  kind: KeptKind,
  kept: KeptFile | undefined,
  location: string,
  port: LimiterPort,
): Promise<void> {
  try {
    for (const [column, bytes] of (kept?.columns ?? []).entries())
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.toString('base64', at, at + PIECE_BYTES)
        port.send({ kept: 'piece', kind, location, column, piece } satisfies Answer)
        await setImmediate()
      }
    const about = kept?.about && { about: kept.about }
    port.send({ kept: 'end', kind, location, isThere: kept !== undefined, ...about } satisfies Answer)
  } catch {
    // The other process is gone.
  }
}

/** In a worker: a file as it was when it could last be used; undefined where its primary process has none. */
export async function askForKeptFile(
  kind: KeptKind,
  port: LimiterPort,
  location: string,
): Promise<KeptFile | undefined> {
  const columns: (Buffer[] | undefined)[] = []
  let limit: NodeJS.Timeout | undefined
  const answer = new Promise<KeptFile | undefined>((resolve) => {
    limit = setTimeout(() => resolve(undefined), ANSWER_MS)
    port.listen((message) => {
      if (!isMessage(message) || message.kind !== kind || message.location !== location) return
      if (message.kept === 'piece')
        (columns[message.column] ??= []).push(Buffer.from(message.piece, 'base64'))
      if (message.kept !== 'end') return
      const { isThere, about } = message
      const joined = Array.from(columns, (pieces) => Buffer.concat(pieces ?? []))
      resolve(isThere ? { columns: joined, ...(about && { about }) } : undefined)
    })
    port.send({ kept: 'ask', kind, location } satisfies Question)
  })
  return answer.finally(() => clearTimeout(limit))
}

function isMessage(message: unknown): message is Question | Answer {
  return typeof message === 'object' && message !== null && 'kept' in message
}
