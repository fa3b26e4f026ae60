import { setTimeout as sleep } from 'node:timers/promises'
import type { Writable } from 'node:stream'
import { seededRandom } from '../../support/random/seeded-random.ts'
import type { Delivery } from './plan.ts'

/** Maximum number of pieces, no matter how small the delivery wants them. */
const maxPieces = 60

/**
 * Writes bytes in the pieces that the delivery describes, with backpressure. Resolves when all bytes are written, or when `isOver` returns
 * that nobody reads them any more.
 */
export async function deliver(
  stream: Writable,
  bytes: Buffer,
  { seed, most, pauseShare, pauseMs }: Delivery,
  isOver: () => boolean,
): Promise<void> {
  const random = seededRandom(seed)
  const least = Math.ceil(bytes.length / maxPieces)
  for (let at = 0; at < bytes.length && !isOver() && stream.writable;) {
    const size = Math.max(least, 1 + Math.floor(random() * most))
    const taken = stream.write(bytes.subarray(at, at + size))
    at += size
    if (!taken && at < bytes.length) await untilDrained(stream, isOver)
    if (at < bytes.length && random() < pauseShare) await sleep(pauseMs * random())
  }
}

function untilDrained(stream: Writable, isOver: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = setInterval(() => isOver() && done(), 50)
    const done = (): void => {
      clearInterval(look)
      stream.off('drain', done)
      stream.off('close', done)
      stream.off('error', done)
      resolve()
    }
    stream.on('drain', done)
    stream.on('close', done)
    stream.on('error', done)
    if (stream.destroyed) done()
  })
}
