import { setImmediate } from 'node:timers/promises'

/** Work that yields wherever it can be left off for a while: `doAtOnce` does it without a pause, `doInTurns` with pauses. */
export type Steps<Result> = Generator<void, Result, void>

/** After this much of it other work has its turn; a step must not take much longer. */
const SLICE_MS = 4

/** Does work in one go: what else the process has to do waits. */
export function doAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * Does work in turns of the event loop of its own, a few milliseconds of it in each, so that what else comes is not kept
 * waiting. Begins in a turn of its own too. Rejects with what a step throws.
 *
 * It leaves garbage to V8, which copies the part of the young generation that stays: 8 to 15 ms of CPU with ten thousand rules. A
 * collection that is asked for after each turn would be shorter, but ends a marking of the whole heap that is under way: 27 to 75 ms.
 */
export async function doInTurns<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    await setImmediate()
    const untilMs = performance.now() + SLICE_MS
    do {
      const step = steps.next()
      if (step.done) return step.value
    } while (performance.now() < untilMs)
  }
}
