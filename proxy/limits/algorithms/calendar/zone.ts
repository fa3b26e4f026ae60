/** The local time of a time zone. Instants and local times are in milliseconds; local times are expressed as if the zone were UTC. */
export type Zone = {
  /** Returns what local clocks show at an instant, minus the instant, in milliseconds. */
  offsetAt(epochMs: number): number
  /** Returns the first instant at which local clocks show this time or, if they skip it, a later time. */
  firstAt(localMs: number): number
  /** Returns the first instant after `fromMs`, up to `toMs`, that has the offset of `toMs`. */
  findChange(fromMs: number, toMs: number): number
}

/** Exceeds any zone's offset, and the difference between any two offsets. */
const MAX_OFFSET_MS = 26 * 3_600_000

/**
 * Opens a time zone of the IANA database, as Node's ICU implements it.
 *
 * @throws RangeError if the database has no time zone of this name
 */
export function openZone(timezone: string): Zone {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })

  function offsetAt(epochMs: number): number {
    const wholeMs = Math.floor(epochMs / 1000) * 1000
    const shown = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 }
    for (const { type, value } of format.formatToParts(wholeMs))
      if (type in shown) shown[type as keyof typeof shown] = Number(value)
    const { year, month, day, hour, minute, second } = shown
    return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs
  }

  /** @param holds false at `fromMs`, true at `toMs`, and changes once in between */
  function firstInstant(fromMs: number, toMs: number, holds: (epochMs: number) => boolean): number {
    let [before, after] = [fromMs, toMs]
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2)
      if (holds(middle)) after = middle
      else before = middle
    }
    return after
  }

  return {
    offsetAt,
    firstAt: (localMs) =>
      firstInstant(
        localMs - MAX_OFFSET_MS,
        localMs + MAX_OFFSET_MS,
        (epochMs) => epochMs + offsetAt(epochMs) >= localMs,
      ),
    findChange(fromMs, toMs) {
      const offset = offsetAt(toMs)
      return firstInstant(fromMs, toMs, (epochMs) => offsetAt(epochMs) === offset)
    },
  }
}
