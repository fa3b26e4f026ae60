/** How often it is looked at what clients hold. */
const sweepMs = 2_000
/** So much less than there was, and at most half of it left, is a burst that is over. */
const burstBytes = 16 * 1024 * 1024
/** Whoever sends one burst after another does not make the process collect all the time. */
const leastPauseMs = 30_000

/**
 * Gives the memory of many clients back when they are gone.
 *
 * What they held lives long enough to end up in the part of the heap that is collected seldom. After 4,000 connections of
 * an attack, which came and went for half a minute, the process held 277 MiB instead of 127, and still did a minute and a
 * half later with 50 clients at work: their garbage is collected young, and gives no reason to look at the old. After
 * 15,000 responses that were not read it held 420 MiB.
 *
 * @param heldBytes about what clients hold now
 * @param returnMemory collects all garbage and gives free memory back, which stops the process for about a tenth of a
 *   second
 * @returns how to stop
 */
export function trimHeapAfterBursts(heldBytes: () => number, returnMemory: () => void): () => void {
  let most = 0
  let wasOver = false
  let rests = 0
  const sweep = setInterval(() => {
    const held = heldBytes()
    most = Math.max(most, held)
    const isOver = most - held >= burstBytes && held <= most / 2
    // Those of an attack may be about to come back: a burst has to be over twice in a row.
    if (--rests <= 0 && isOver && wasOver) {
      rests = leastPauseMs / sweepMs
      most = held
      returnMemory()
    }
    wasOver = isOver
  }, sweepMs)
  sweep.unref()
  return () => clearInterval(sweep)
}
