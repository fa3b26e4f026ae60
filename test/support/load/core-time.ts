import { readFileSync } from 'node:fs'

/** How long a process's main thread has run on a core and has waited for one, in nanoseconds, as Linux counts them. */
type CoreTime = { readonly usedNs: number; readonly waitedNs: number }

/** A process waits for a core for this share of the time only if other processes keep all cores busy. */
export const BUSY_SHARE = 0.05

/** @param pid the process; this one unless given */
export function readCoreTime(pid: number | 'self' = 'self'): CoreTime {
  const [usedNs = NaN, waitedNs = NaN] = readFileSync(`/proc/${pid}/schedstat`, 'latin1')
    .split(' ')
    .map(Number)
  return { usedNs, waitedNs }
}

/** Begins to watch how long this process waits for a core. @returns a function for the share of the time since then */
export function watchWaiting(): () => number {
  const began = { atMs: performance.now(), waitedNs: readCoreTime().waitedNs }
  return () => (readCoreTime().waitedNs - began.waitedNs) / 1e6 / (performance.now() - began.atMs)
}

/** Begins to watch whether this process has to wait for a core, as it does on a busy machine. */
export function watchForWaiting(): () => boolean {
  const readShare = watchWaiting()
  return () => readShare() >= BUSY_SHARE
}
