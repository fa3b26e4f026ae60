import { setTimeout as sleep } from 'node:timers/promises'
import type { Verdict } from './random-history.ts'

/** A history takes 2 s, or 20 s on a busy machine. One that takes this long hangs. */
const HANGS_AFTER_MS = 120_000
const AT_ONCE = 8

export type Series = {
  /** The seed of the first history. Each later history uses the next number. */
  readonly firstSeed: number
  readonly histories: number
  readonly play: (seed: number) => Promise<Verdict>
}

/**
 * Plays histories, eight at once. Each has its own time limit, so that a busy machine slows all of them down and fails none, and a history
 * that hangs is named.
 *
 * @returns the histories that violate the promise or do not end
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

/** The time limit of a test with this many histories: more than they need if each takes its maximum time. */
export function timeLimitMs(histories: number): number {
  return (Math.ceil(histories / AT_ONCE) + 1) * HANGS_AFTER_MS
}

async function playInTime(seed: number, play: Series['play'], hangsAfterMs: number): Promise<Verdict> {
  const ended = new AbortController()
  const hangs = sleep(hangsAfterMs, undefined, { signal: ended.signal }).then(
    () => ({ seed, faults: [], violations: [`it did not end in ${hangsAfterMs} ms`] }),
    // Aborted, because the history ended first.
    () => ({ seed, faults: [], violations: [] }),
  )
  try {
    return await Promise.race([play(seed), hangs])
  } finally {
    ended.abort()
  }
}
