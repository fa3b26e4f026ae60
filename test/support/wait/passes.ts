import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Lets time pass. To wait for an event, use `eventually`. Use this for events that must not happen meanwhile, for pieces that must arrive
 * separately, and for things that end after a given time by a clock that no test can move. If a busy machine makes the pause useless,
 * because everything else waits too, the test must become weaker instead of failing.
 *
 * @param ms the minimum number of milliseconds that pass
 */
export async function passes(ms: number): Promise<void> {
  await sleep(ms)
}

/** How long the value must stay the same. */
const REST_MS = 200

/**
 * Waits until a value has stayed the same for 200 ms, when everything that can move has moved.
 *
 * @param read returns a number that changes as long as something moves
 * @returns the final number
 * @throws Error if the value still changes after 30 s
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
