import { setTimeout as sleep } from 'node:timers/promises'
import { closeNew, describeNew, listResources, TIMER, type Resources } from './resources.ts'

/** Closing resources at the end of a test takes a few turns of the event loop, of this process or of its peer, on a busy machine too. */
const GRACE_MS = 10_000

/**
 * Resolves when everything that was opened since `before` is closed. Closes any resource that is still open after `graceMs`, so that it
 * does not affect the next test file.
 *
 * @throws if something was left open, with a line for each resource
 */
export async function checkNothingLeft(before: Resources, graceMs = GRACE_MS): Promise<void> {
  const deadlineMs = performance.now() + graceMs
  let left = describeNew(before, listResources())
  for (let waitMs = 1; left.length > 0 && performance.now() < deadlineMs; waitMs = Math.min(2 * waitMs, 50)) {
    // This timer must not count as one that was left.
    await sleep(waitMs, undefined, { ref: true })
    left = describeNew(before, listResources())
  }
  if (left.length === 0) return
  closeNew(before, listResources())
  throw new Error(`left open at the end of the file:\n${left.map((each) => `  ${each}`).join('\n')}`)
}

/**
 * Timers that earlier files left, for which those files have failed. The timers at the beginning of a file are not used for this, as
 * vitest's own timer may exist for a tenth of a second, and would hide one that the file leaves.
 */
let leftTimers = 0

/** Checks a test file at its end, against the resources at its beginning. */
export async function checkFile(begun: Resources): Promise<void> {
  try {
    await checkNothingLeft({ ...begun, counts: new Map(begun.counts).set(TIMER, leftTimers) })
  } finally {
    leftTimers = listResources().counts.get(TIMER) ?? 0
  }
}
