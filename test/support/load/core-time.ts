import { readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** Of a process's main thread, as Linux counts it: nanoseconds that it has had of a core, and that it has waited for one. */
type CoreTime = { readonly usedNs: number; readonly waitedNs: number }

/** A process waits for a core for this share of the time only where others keep all of them busy. */
const BUSY_SHARE = 0.05

/** @param pid of a process; this one unless given */
export function readCoreTime(pid: number | 'self' = 'self'): CoreTime {
  const [usedNs = NaN, waitedNs = NaN] = readFileSync(`/proc/${pid}/schedstat`, 'latin1')
    .split(' ')
    .map(Number)
  return { usedNs, waitedNs }
}

/** Begins to watch how long this process has to wait for a core. @returns the share of the time since */
function watchWaiting(): () => number {
  const began = { atMs: performance.now(), waitedNs: readCoreTime().waitedNs }
  return () => (readCoreTime().waitedNs - began.waitedNs) / 1e6 / (performance.now() - began.atMs)
}

/** Begins to watch whether this process has to wait for a core, as it does on a machine that is busy with something else. */
export function watchForWaiting(): () => boolean {
  const readShare = watchWaiting()
  return () => readShare() >= BUSY_SHARE
}

/**
 * For a bound on the clock, which says something of Sluice only on a machine with a core to spare. `npm run test:all` on an idle machine
 * judges all of them.
 *
 * @returns judges whether something took less than `maxMs`, unless the machine was busy since the call: then it prints that it does not
 */
export function watchForBusyMachine(): (what: string, ms: number, maxMs: number) => void {
  const readShare = watchWaiting()
  return (what, ms, maxMs) => {
    const share = readShare()
    if (share < BUSY_SHARE) expect(ms, what).toBeLessThan(maxMs)
    else
      console.log(
        `${what}: ${Math.round(ms)} ms, not judged, as this process waited for a core for ${Math.round(100 * share)} % of the time`,
      )
  }
}
