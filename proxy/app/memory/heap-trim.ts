/** How often the memory held by clients is checked. */
const sweepMs = 2_000
/** A burst is over when at least this much has been freed and at most half is left. */
const burstBytes = 16 * 1024 * 1024
/** Minimum time between two collections, so that repeated bursts do not keep the process collecting. */
const minPauseMs = 30_000

/**
 * Returns memory to the system after many clients have left.
 *
 * Their objects live long enough to be promoted to the old generation, which is rarely collected. After 4,000
 * connections of an attack, which came and went for half a minute, the process held 277 MiB instead of 127, and still
 * did a minute and a half later with 50 clients at work: their garbage is collected young, and gives no reason to look
 * at the old. After 15,000 responses that were not read it held 420 MiB.
 *
 * @param heldBytes roughly the bytes that clients hold now
 * @param returnMemory collects all garbage and gives free memory back, which stops the process for about a tenth of a
 *   second
 * @returns how to stop
 */
export function trimHeapAfterBursts(heldBytes: () => number, returnMemory: () => void): () => void {
  let peak = 0
  let wasOver = false
  let rests = 0
  const sweep = setInterval(() => {
    const held = heldBytes()
    peak = Math.max(peak, held)
    const isOver = peak - held >= burstBytes && held <= peak / 2
    // Clients of an attack may reconnect: the burst has to be over at two checks in a row.
    if (--rests <= 0 && isOver && wasOver) {
      rests = minPauseMs / sweepMs
      peak = held
      returnMemory()
    }
    wasOver = isOver
  }, sweepMs)
  sweep.unref()
  return () => clearInterval(sweep)
}
