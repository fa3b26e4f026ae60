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

/**
 * For a bound on the clock, which says something of Sluice only on a machine with a core to spare: begins to watch how long this
 * process has to wait for one. `npm run test:all` on an idle machine judges all of them.
 *
 * @returns judges whether something took less than `maxMs`, unless the machine was busy since: then it prints that it does not
 */
export function watchForBusyMachine(): (what: string, ms: number, maxMs: number) => void {
  const began = { atMs: performance.now(), waitedNs: readCoreTime().waitedNs }
  return (what, ms, maxMs) => {
    const waitedMs = (readCoreTime().waitedNs - began.waitedNs) / 1e6
    const share = waitedMs / (performance.now() - began.atMs)
    if (share < BUSY_SHARE) expect(ms, what).toBeLessThan(maxMs)
    else
      console.log(
        `${what}: ${Math.round(ms)} ms, not judged, as this process waited for a core for ${Math.round(100 * share)} % of the time`,
      )
  }
}
