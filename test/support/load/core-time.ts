import { readFileSync } from 'node:fs'

/** The time of a process's main thread, as Linux counts it: nanoseconds that it ran on a core, and that it waited for one. */
type CoreTime = { readonly usedNs: number; readonly waitedNs: number }

/** A process waits for a core for this share of the time only where others keep all of them busy. */
export const BUSY_SHARE = 0.05

/** @param pid of a process; this one unless given */
export function readCoreTime(pid: number | 'self' = 'self'): CoreTime {
  const [usedNs = NaN, waitedNs = NaN] = readFileSync(`/proc/${pid}/schedstat`, 'latin1')
    .split(' ')
    .map(Number)
  return { usedNs, waitedNs }
}

/** Begins to watch how long this process has to wait for a core. @returns the share of the time since */
export function watchWaiting(): () => number {
  const began = { atMs: performance.now(), waitedNs: readCoreTime().waitedNs }
  return () => (readCoreTime().waitedNs - began.waitedNs) / 1e6 / (performance.now() - began.atMs)
}

/** Begins to watch whether this process has to wait for a core, as it does on a machine that is busy with something else. */
export function watchForWaiting(): () => boolean {
  const readShare = watchWaiting()
  return () => readShare() >= BUSY_SHARE
}
