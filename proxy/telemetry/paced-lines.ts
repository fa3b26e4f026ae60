/**
 * Rate-limits a log line for an event that can happen thousands of times a second: writes the first at once and then at
 * most one per `everyMs`, with the number of events since the previous line.
 *
 * @param write gets this number, and the detail of the last call
 */
export function paceLines<Detail>(
  everyMs: number,
  write: (times: number, detail: Detail) => void,
): (detail: Detail, count?: number) => void {
  let times = 0
  let pause: NodeJS.Timeout | undefined
  const writeNow = (detail: Detail): void => {
    write(times, detail)
    times = 0
    pause = setTimeout(() => {
      pause = undefined
      if (times > 0) writeNow(latest)
    }, everyMs).unref()
  }
  let latest: Detail
  return (detail, count = 1) => {
    times += count
    latest = detail
    if (!pause) writeNow(detail)
  }
}

/**
 * Returns a function that returns whether to write a line: the first time, and at most once a minute after that. The events in between are
 * not counted.
 *
 * @param now milliseconds of a monotonic clock
 */
export function onceAMinute(now: () => number): () => boolean {
  let lastMs = -Infinity
  return () => {
    const nowMs = now()
    if (nowMs - lastMs < 60_000) return false
    lastMs = nowMs
    return true
  }
}

/**
 * Does what `paceLines` does, separately for each key.
 *
 * @returns a function whose keys must be few, because each is kept
 */
export function paceLinesByKey<Detail>(
  everyMs: number,
  write: (times: number, detail: Detail) => void,
): (key: string, detail: Detail) => void {
  const pacers = new Map<string, (detail: Detail) => void>()
  return (key, detail) => {
    let logPaced = pacers.get(key)
    if (!logPaced) pacers.set(key, (logPaced = paceLines(everyMs, write)))
    logPaced(detail)
  }
}
