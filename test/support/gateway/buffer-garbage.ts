import { constants, PerformanceObserver } from 'node:perf_hooks'
import { writeSync } from 'node:fs'

/*
 * Loaded into a gateway with --import. Soon after the start it makes 1.3 GB of garbage in buffers of 64 KiB, as large bodies do, and
 * reports how many full collections that caused.
 */

const PIECES = 20_000
const PIECES_A_TURN = 50

let collections = 0
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = entry as unknown as { readonly detail: { readonly kind: number } }
    if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections++
  }
})

function makeGarbage(pieces: number): void {
  for (let i = 0; i < PIECES_A_TURN; i++) Buffer.allocUnsafeSlow(64 * 1024).fill(1, 0, 1)
  if (pieces > PIECES_A_TURN) setImmediate(makeGarbage, pieces - PIECES_A_TURN)
  // The observer learns of the last collections later.
  else setTimeout(() => writeSync(2, `process ${process.pid}: ${collections} full collections\n`), 100)
}

setTimeout(() => {
  observer.observe({ entryTypes: ['gc'] })
  makeGarbage(PIECES)
}, 1_500)
