/** How often the number of new connections is checked. */
const sweepMs = 100
/** Minimum number of new connections for a collection. */
const minConnections = 20

/**
 * Keeps pauses short while many connections come and go.
 *
 * The objects of a connection that stays for some seconds are copied by the next collection of young garbage. V8 puts that off
 * until the young generation is full, some 16 or 32 MB, and then copies what a thousand connections hold while everybody
 * waits: 400 new connections a second, thrown out for being slow, cost 10 to 30 ms every few seconds. Collected a few
 * dozen connections at a time it is the same work in pauses of about a millisecond.
 *
 * @param accepted how many connections there have been so far
 * @param collect collects young garbage
 * @returns how to stop
 */
export function scheduleMinorGcs(accepted: () => number, collect: () => void): () => void {
  let collectedAt = accepted()
  const sweep = setInterval(() => {
    const now = accepted()
    if (now - collectedAt < minConnections) return
    collectedAt = now
    collect()
  }, sweepMs)
  sweep.unref()
  return () => clearInterval(sweep)
}
