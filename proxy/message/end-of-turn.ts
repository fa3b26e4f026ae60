/** Has something to write at the end of a turn of the event loop. */
export type Flushable = {
  /** Writes it. Does not throw. */
  flush(): void
}

/**
 * Has connections write when all that has arrived was read, one after another. What is written wakes up the process that it is for;
 * one that is written to between two reads goes to sleep in between, and waking it up each time costs more than the rest of a write.
 *
 * @param most so many write at once: with more the first would wait long, and who has been woken up would have nothing to do
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
