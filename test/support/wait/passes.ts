import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Lets time pass. Not to wait for an event, which `eventually` does, but for events that must not come meanwhile, for pieces that
 * must arrive apart, and for things that end after a given time by a clock that no test can move. If a busy machine makes the
 * pause useless, as all else waits too, the test must be weaker and not fail.
 *
 * @param ms milliseconds that pass at least
 */
export async function passes(ms: number): Promise<void> {
  await sleep(ms)
}

/** The value is expected to stay the same for so long. */
const REST_MS = 200

/**
 * Waits until the value stays the same for 200 ms: everything that can move has moved.
 *
 * @param read a number that changes as long as something moves
 * @returns the number that it came to
 * @throws Error if that takes more than 30 s
 */
export async function atRest(read: () => number): Promise<number> {
  const endMs = performance.now() + 30_000
  for (let before = read(); ;) {
    await sleep(REST_MS)
    const now = read()
    if (now === before) return now
    if (performance.now() > endMs) throw new Error(`it did not come to rest in 30 s: ${before}, then ${now}`)
    before = now
  }
}
