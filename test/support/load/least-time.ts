/*
 * A bound on a time judges the fastest of several runs, because the first run may take many times as long, until V8 has compiled the code.
 * `threadCpuUs` counts the CPU of this thread alone, without that of V8's helper threads, which compile and collect garbage.
 */

/** Other load on the same processor may slow a measurement down for seconds. */
const END_MS = 30_000
/** If all samples take this many times their bound, the measurement ends early. */
const BEYOND_DOUBT = 5
const MIN_SAMPLES = 5

/**
 * Measures until a time is below its bound, for at most 30 seconds, as other load on the machine only ever adds to a time.
 *
 * @param bound in the unit that `measure` returns; a function if the bound depends on a reference that is measured too
 * @returns the shortest time
 */
export async function leastTime(
  bound: number | (() => number),
  measure: () => number | Promise<number>,
): Promise<number> {
  const samples = new Samples(bound)
  while (samples.wantsMore()) samples.add(await measure())
  return samples.least
}

/** Does what `leastTime` does, synchronously, in a process of its own. In a property, use `SlowInputs`. */
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

/** Microseconds of CPU that this thread takes to run the function. */
export function threadCpuUs(run: () => unknown): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return user + system
}

/**
 * The inputs of a property that seem to take too long. Each input is measured once in the property, and slow ones again after it.
 * Otherwise each slow input, and each shorter one that fast-check derives from it, would be measured for 30 seconds.
 */
export class SlowInputs<Input> {
  readonly #boundUs: number
  readonly #run: (input: Input) => unknown
  readonly #suspects: Input[] = []

  /** @param boundUs microseconds of CPU of this thread */
  constructor(boundUs: number, run: (input: Input) => unknown) {
    this.#boundUs = boundUs
    this.#run = run
  }

  measure(input: Input): void {
    if (threadCpuUs(() => this.#run(input)) >= this.#boundUs) this.#suspects.push(input)
  }

  /** @returns the first input that takes at least as long as the bound each time */
  confirm(): Input | undefined {
    return this.#suspects.find(
      (input) => leastTimeSync(this.#boundUs, () => threadCpuUs(() => this.#run(input))) >= this.#boundUs,
    )
  }
}
