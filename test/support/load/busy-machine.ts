import { expect } from 'vitest'
import { BUSY_SHARE, watchWaiting } from './core-time.ts'

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
