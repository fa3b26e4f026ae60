/** Has something to write at the end of a turn of the event loop. */
export type Flushable = {
  /** Writes it. Does not throw. */
  flush(): void
}

/**
 * Makes a function that collects connections and flushes them together at the end of the turn, when all that has arrived was read.
 * A write wakes up the process that it is for. Where reads come between the writes, that process falls asleep after each of them and
 * is woken up again, which costs more than the rest of the write.
 *
 * @param most flushes earlier when so many have been collected, so that the first does not wait long
 */
export function endOfTurn(most = Infinity): (flushable: Flushable) => void {
  let waiting: Flushable[] = []
  const flushAll = (): void => {
    const flushables = waiting
    waiting = []
    for (const flushable of flushables) flushable.flush()
  }
  return (flushable) => {
    if (waiting.push(flushable) === 1) setImmediate(flushAll)
    else if (waiting.length >= most) flushAll()
  }
}

const MOST_AT_ONCE = 16

/** For connections of which each has one thing to write. */
export const flushAtEndOfTurn = endOfTurn(MOST_AT_ONCE)
