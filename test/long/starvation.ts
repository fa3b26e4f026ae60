import { readFileSync } from 'node:fs'

/** How long processes waited for a core although they could run, which accounts for much of a wait on a busy machine. */
export type StarvationWatch = {
  /** Milliseconds in which the process waited for a processor, in the given period or slightly more. */
  starvedMs(pid: number, fromMs: number, untilMs: number): number
  close(): void
}

const EVERY_MS = 20

/** Regularly reads Linux's statistics of the processes' main threads. On other systems, all values are 0. */
export function watchStarvation(pids: readonly number[]): StarvationWatch {
  const samples: { readonly atMs: number; readonly starvedMs: ReadonlyMap<number, number> }[] = []
  const look = (): void => {
    const starvedMs = new Map(pids.map((pid) => [pid, readStarvedMs(pid)]))
    samples.push({ atMs: performance.now(), starvedMs })
  }
  look()
  const timer = setInterval(look, EVERY_MS)
  return {
    starvedMs(pid, fromMs, untilMs) {
      const before = samples.findLast(({ atMs }) => atMs <= fromMs)
      const after = samples.find(({ atMs }) => atMs >= untilMs) ?? samples.at(-1)
      return (after?.starvedMs.get(pid) ?? 0) - (before?.starvedMs.get(pid) ?? 0)
    },
    close: () => clearInterval(timer),
  }
}

/** The second of the three numbers in `schedstat` is the time spent waiting on a run queue, in nanoseconds. */
function readStarvedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1] ?? 0) / 1e6
  } catch {
    return 0
  }
}
