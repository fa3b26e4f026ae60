import { ByteQueue } from '../message/byte-queue.ts'
import type { HeadLimits } from './parser/head-size.ts'
import { RequestParser } from './parser/request-parser.ts'

/** A first-in, first-out queue of the bytes pipelined after a request that is being served. They are read when it has been answered. */
export class PipelinedBytes {
  /** The first piece, as it was read from the connection or put back. */
  #first: Buffer | undefined
  #later: ByteQueue | undefined

  get bytes(): number {
    return (this.#first?.length ?? 0) + (this.#later?.bytes ?? 0)
  }

  /** @param piece not empty */
  push(piece: Buffer): void {
    if (this.#first === undefined && !this.#later?.bytes) this.#first = piece
    else (this.#later ??= new ByteQueue()).push(piece)
  }

  /** Puts back the rest of a piece that was taken out. */
  unshift(piece: Buffer): void {
    this.#first = piece
  }

  shift(): Buffer | undefined {
    const piece = this.#first ?? this.#later?.shift()
    this.#first = undefined
    if (this.#later?.isEmpty) this.#later = undefined
    return piece
  }

  /** Takes out all bytes. */
  takeAll(): Buffer {
    const pieces: Buffer[] = []
    for (let piece = this.shift(); piece; piece = this.shift()) pieces.push(piece)
    return pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces)
  }
}

/** The number of complete requests in these bytes. */
export function countWholeRequests(bytes: Buffer, limits: HeadLimits): number {
  let whole = 0
  const state = { isLost: false }
  const parser = new RequestParser(
    {
      onHead({ framing, persistent }) {
        if (framing !== 'length' && framing !== 'chunked') whole++
        state.isLost = framing === 'unknown' || !persistent
      },
      onBody: () => undefined,
      onBodyEnd() {
        whole++
      },
    },
    limits,
  )
  try {
    for (let at = 0; at < bytes.length && !state.isLost;) at = parser.execute(bytes, at)
  } catch {
    // Malformed input is answered when it is read.
  }
  return whole
}
