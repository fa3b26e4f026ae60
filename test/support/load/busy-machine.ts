import { expect } from 'vitest'
import { BUSY_SHARE, watchWaiting } from './core-time.ts'

/**
 * For bounds on wall-clock time, which say something about Sluice only on a machine with a core to spare. On an idle machine,
 * `npm run test:all` judges all of them.
 *
 * @returns a function that expects a time below `maxMs`; if the machine has been busy since the call, it only prints that it does not judge
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
