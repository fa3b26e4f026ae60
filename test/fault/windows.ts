import type { Attempt } from './history.ts'

/** The requests of one window, judged only by the times at which they were sent and answered. */
type WindowOf<A> = {
  readonly sure: readonly A[]
  /** The same requests, and those at the edges that may have been in this window or in the one beside it. */
  readonly possible: readonly A[]
}

/** Redis keeps time in whole milliseconds, and reads its clock once in each turn of its event loop. */
const CLOCK_ROUGHNESS_MS = 3

/**
 * Splits a history into fixed windows. Each window begins with the first request counted after the previous one has ended.
 *
 * @param attempts sorted by the time at which they were sent
 */
export function splitWindows<A extends Attempt>(attempts: readonly A[], windowMs: number): WindowOf<A>[] {
  const windows: WindowOf<A>[] = []
  let atItsStart: readonly A[] = []
  let rest = attempts
  while (rest.length > 0) {
    // If nothing in the rest is counted, the request that began the window can only be one at its start.
    const counted = rest.filter(isAllowed)
    const mayBegin = [...atItsStart.filter(isAllowed), ...counted]
    const beginsAtEarliestMs = Math.min(...mayBegin.map(({ sentMs }) => sentMs))
    const beginsAtLatestMs = Math.min(...counted.map(({ answeredMs }) => answeredMs))
    const endsAtEarliestMs = beginsAtEarliestMs + windowMs - CLOCK_ROUGHNESS_MS
    const endsAtLatestMs = beginsAtLatestMs + windowMs + CLOCK_ROUGHNESS_MS
    const sure = rest.filter(({ answeredMs }) => answeredMs < endsAtEarliestMs)
    const atItsEnd = rest.filter(
      ({ sentMs, answeredMs }) => answeredMs >= endsAtEarliestMs && sentMs <= endsAtLatestMs,
    )
    windows.push({ sure, possible: [...atItsStart, ...sure, ...atItsEnd] })
    rest = rest.filter(({ sentMs }) => sentMs > endsAtLatestMs)
    atItsStart = atItsEnd
  }
  return windows
}

function isAllowed({ outcome }: Attempt): boolean {
  return outcome === 'allowed'
}
