/** How often the memory held by clients is checked. */
const SWEEP_MS = 2_000
/** A burst is over when clients have released at least this many bytes and hold at most half of the peak. */
const BURST_BYTES = 16 * 1024 * 1024
/** Minimum time between two collections, so that repeated bursts do not keep the process collecting. */
const MIN_PAUSE_MS = 30_000

/**
 * Returns memory to the system after many clients have disconnected.
 *
 * Their objects live long enough to be promoted to the old generation, which is rarely collected. After an attack with 4,000 connections
 * that came and went for half a minute, the process held 277 MiB instead of 127. A minute and a half later, with 50 active clients, it
 * still held as much: the garbage of these clients is collected young, and does not cause a collection of the old generation. After 15,000
 * unread responses, the process held 420 MiB.
 *
 * @param heldBytes returns the approximate number of bytes that clients hold now
 * @param returnMemory collects all garbage and returns free memory, which stops the process for about a tenth of a second
 * @returns a function that stops the checks
 */
export function trimHeapAfterBursts(heldBytes: () => number, returnMemory: () => void): () => void {
  let peak = 0
  let wasOver = false
  let rests = 0
  const sweep = setInterval(() => {
    const held = heldBytes()
    peak = Math.max(peak, held)
    const isOver = peak - held >= BURST_BYTES && held <= peak / 2
    // The burst must be over at two checks in a row, because the clients of an attack may reconnect.
    if (--rests <= 0 && isOver && wasOver) {
      rests = MIN_PAUSE_MS / SWEEP_MS
      peak = held
      returnMemory()
    }
    wasOver = isOver
  }, SWEEP_MS)
  sweep.unref()
  return () => clearInterval(sweep)
}
