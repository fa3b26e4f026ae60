import { setImmediate } from 'node:timers/promises'

/** Work that yields wherever it may be paused. `doAtOnce` does it without a pause, `doInTurns` in slices. */
export type Steps<Result> = Generator<void, Result, void>

/** The length of a slice, after which other work gets a turn. A single step must not take much longer. */
const SLICE_MS = 4

/** Does all the work at once, while everything else in the process waits. */
export function doAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/**
 * Does the work in slices of a few milliseconds, each in a turn of the event loop of its own, so that requests are served in between. The
 * first slice begins in a later turn too. Rejects with the error that a step throws.
 *
 * It does not collect garbage itself. V8 copies the surviving part of the young generation, which takes 8 to 15 ms of CPU with ten thousand
 * rules. A collection requested after each turn would be shorter, but would finish any marking of the whole heap in progress: 27 to 75 ms.
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
