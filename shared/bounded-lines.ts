const LINES_PER_SPAN = 100
const SPAN_MS = 1_000

/**
 * Bounds log lines that clients can cause and that each name a different client, so that a flood of them costs little and does not hide
 * other lines. For lines that all say the same, use `paceLines`, which writes fewer.
 *
 * @param logLeftOut called at the end of a second with the number of its lines that were left out, if there were any
 * @returns a function that returns whether to write a line; at most 100 lines a second are written
 */
export function boundLines(logLeftOut: (leftOut: number) => void): () => boolean {
  let span: NodeJS.Timeout | undefined
  let lines = 0
  const endSpan = (): void => {
    span = undefined
    const leftOut = lines - LINES_PER_SPAN
    lines = 0
    if (leftOut > 0) logLeftOut(leftOut)
  }
  return () => {
    // The timer must not keep the process alive.
    span ??= setTimeout(endSpan, SPAN_MS).unref()
    lines += 1
    return lines <= LINES_PER_SPAN
  }
}
