/** How often the number of new connections is checked. */
const SWEEP_MS = 100
/** Minimum number of new connections for a collection. */
const MIN_CONNECTIONS = 20

/**
 * Keeps pauses of the collector short while many connections come and go.
 *
 * The next collection of young garbage copies the objects of a connection that stays open for some seconds. V8 postpones this collection
 * until the young generation is full, at some 16 or 32 MB, and then copies the objects of a thousand connections while all clients wait.
 * 400 new connections a second, closed for being slow, cost 10 to 30 ms every few seconds. Collecting after every few dozen connections
 * does the same work in pauses of about a millisecond.
 *
 * @param accepted returns the number of connections accepted so far
 * @param collect collects young garbage
 * @returns a function that stops the checks
 */
export function scheduleMinorGcs(accepted: () => number, collect: () => void): () => void {
  let collectedAt = accepted()
  const sweep = setInterval(() => {
    const now = accepted()
    if (now - collectedAt < MIN_CONNECTIONS) return
    collectedAt = now
    collect()
  }, SWEEP_MS)
  sweep.unref()
  return () => clearInterval(sweep)
}
