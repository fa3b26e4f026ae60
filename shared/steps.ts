import { setImmediate } from 'node:timers/promises'

/** Work that yields at each place where it may be paused: `doAtOnce` does it without a pause, `doInTurns` in slices. */
export type Steps<Result> = Generator<void, Result, void>

/** The length of a slice, after which other work has its turn. A step must not take much longer. */
const SLICE_MS = 4

/** Does the work to its end, while everything else in the process waits. */
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
 * It leaves garbage to V8, which copies the surviving part of the young generation: 8 to 15 ms of CPU with ten thousand rules. A
 * collection that is asked for after each turn would be shorter, but ends a marking of the whole heap in progress: 27 to 75 ms.
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
