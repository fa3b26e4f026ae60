import { setTimeout as sleep } from 'node:timers/promises'
import { closeNew, describeNew, listResources, TIMER, type Resources } from './resources.ts'

/** Closing resources at the end of a test takes a few turns of the event loop, of this process or of its peer, on a busy machine too. */
const GRACE_MS = 10_000

/**
 * Resolves when everything that was opened since `before` is closed. Anything still open after a moment is closed here, for the
 * next test file's sake.
 *
 * @throws if something was left, with a line for each
 */
export async function checkNothingLeft(before: Resources, graceMs = GRACE_MS): Promise<void> {
  const deadlineMs = performance.now() + graceMs
  let left = describeNew(before, listResources())
  for (let waitMs = 1; left.length > 0 && performance.now() < deadlineMs; waitMs = Math.min(2 * waitMs, 50)) {
    // Not to be counted as one that was left.
    await sleep(waitMs, undefined, { ref: true })
    left = describeNew(before, listResources())
  }
  if (left.length === 0) return
  closeNew(before, listResources())
  throw new Error(`left open at the end of the file:\n${left.map((each) => `  ${each}`).join('\n')}`)
}

/**
 * Timers of earlier files, which failed for them. Those that are there when a file begins do not count: for a tenth of a second there
 * may be one of vitest's own, in whose place the file could leave another.
 */
let leftTimers = 0

/** Does that at the end of a test file, with what there was when it began. */
export async function checkFile(begun: Resources): Promise<void> {
  try {
    await checkNothingLeft({ ...begun, counts: new Map(begun.counts).set(TIMER, leftTimers) })
  } finally {
    leftTimers = listResources().counts.get(TIMER) ?? 0
  }
}
