import { setTimeout as sleep } from 'node:timers/promises'
import type { Verdict } from './random-history.ts'

/** A history takes 2 s, and 20 s on a machine that is busy with much else: one that takes so long hangs. */
const HANGS_AFTER_MS = 120_000
const AT_ONCE = 8

export type Series = {
  /** The seed of the first history. Each after it has the next number. */
  readonly firstSeed: number
  readonly histories: number
  readonly play: (seed: number) => Promise<Verdict>
}

/**
 * Plays histories, eight at once. Each has a time limit of its own, so that a busy machine takes longer for all of them and fails
 * none, and so that one that hangs is named.
 *
 * @returns those that violate the promise or do not end
 */
export async function playHistories(
  { firstSeed, histories, play }: Series,
  hangsAfterMs = HANGS_AFTER_MS,
): Promise<Verdict[]> {
  let next = firstSeed
  const failed: Verdict[] = []
  const playOn = async (): Promise<void> => {
    while (next < firstSeed + histories) {
      const verdict = await playInTime(next++, play, hangsAfterMs)
      if (verdict.violations.length > 0) failed.push(verdict)
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, histories) }, playOn))
  return failed
}

/** The time limit of a test of so many histories: beyond what they take if each takes as long as it may. */
export function timeLimitMs(histories: number): number {
  return (Math.ceil(histories / AT_ONCE) + 1) * HANGS_AFTER_MS
}

async function playInTime(seed: number, play: Series['play'], hangsAfterMs: number): Promise<Verdict> {
  const ended = new AbortController()
  const hangs = sleep(hangsAfterMs, undefined, { signal: ended.signal }).then(
    () => ({ seed, faults: [], violations: [`it did not end in ${hangsAfterMs} ms`] }),
    // Aborted, as the history has ended first.
    () => ({ seed, faults: [], violations: [] }),
  )
  try {
    return await Promise.race([play(seed), hangs])
  } finally {
    ended.abort()
  }
}
