/** A neighbour on the same processor may slow a measurement for seconds. */
const END_MS = 30_000
/** What takes so many times its bound each time is not measured for as long as that. */
const BEYOND_DOUBT = 5
const MIN_SAMPLES = 5

/**
 * Measures until a time is below its bound, for at most 30 seconds: what else the machine does adds to a time, and never takes away.
 *
 * @param bound in the unit that `measure` returns; a function if it depends on a yardstick that is measured beside it
 * @returns the least time of all
 */
export async function leastTime(
  bound: number | (() => number),
  measure: () => number | Promise<number>,
): Promise<number> {
  const samples = new Samples(bound)
  while (samples.wantsMore()) samples.add(await measure())
  return samples.least
}

/** The same for what cannot wait: a property, or a process of its own. */
export function leastTimeSync(bound: number | (() => number), measure: () => number): number {
  const samples = new Samples(bound)
  while (samples.wantsMore()) samples.add(measure())
  return samples.least
}

class Samples {
  least = Infinity
  readonly #bound: () => number
  readonly #endAtMs = performance.now() + END_MS
  #count = 0

  constructor(bound: number | (() => number)) {
    this.#bound = typeof bound === 'number' ? () => bound : bound
  }

  add(time: number): void {
    this.#count += 1
    this.least = Math.min(this.least, time)
  }

  wantsMore(): boolean {
    const bound = this.#bound()
    if (this.least < bound) return false
    const isBeyondDoubt = this.#count >= MIN_SAMPLES && this.least > BEYOND_DOUBT * bound
    return !isBeyondDoubt && performance.now() < this.#endAtMs
  }
}

/** Microseconds of CPU that this thread takes for it. */
export function threadCpuUs(run: () => unknown): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}
