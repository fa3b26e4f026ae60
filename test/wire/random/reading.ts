import type { Readable } from 'node:stream'
import { seededRandom } from '../../support/random/seeded-random.ts'
import type { Reading } from './plan.ts'

/** Slows a stream's reader down as the plan says. @returns a function to call with the size of each piece that arrives */
export function slowDown(
  stream: Pick<Readable, 'pause' | 'resume'>,
  { pauseShare, pauseMs, stallAfterBytes, stallMs }: Reading,
  seed: number,
): (bytes: number) => void {
  const random = seededRandom(seed)
  let taken = 0
  let stalled = stallMs === 0
  const rest = (ms: number): void => {
    stream.pause()
    setTimeout(() => stream.resume(), ms)
  }
  return (bytes) => {
    taken += bytes
    if (!stalled && taken >= stallAfterBytes) {
      stalled = true
      rest(stallMs)
    } else if (pauseShare > 0 && random() < pauseShare) rest(pauseMs * random())
  }
}
