const linesPerSpan = 100
const spanMs = 1_000

/**
 * Bounds log lines that clients can cause, and where each is about another client: a flood of them then costs little, and does not hide
 * other lines. `paceLines` writes fewer, for lines that all say the same.
 *
 * @param logLeftOut called at the end of a second with the number of its lines that were left out, if there were any
 * @returns whether to write a line: up to 100 in a second
 */
export function boundLines(logLeftOut: (leftOut: number) => void): () => boolean {
  let span: NodeJS.Timeout | undefined
  let lines = 0
  const endSpan = (): void => {
    span = undefined
    const leftOut = lines - linesPerSpan
    lines = 0
    if (leftOut > 0) logLeftOut(leftOut)
  }
  return () => {
    // The timer must not keep the process alive.
    span ??= setTimeout(endSpan, spanMs).unref()
    lines += 1
    return lines <= linesPerSpan
  }
}
