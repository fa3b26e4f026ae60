import { setTimeout as sleep } from 'node:timers/promises'

/** Reads again and again until the text matches. Rejects with the last one where it has not in time. */
export async function untilMatches(
  read: () => Promise<unknown>,
  pattern: RegExp,
  timeoutMs = 20_000,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const text = String(await read())
    if (pattern.test(text)) return
    if (performance.now() > deadlineMs)
      throw new Error(`nothing matched ${pattern} in ${timeoutMs} ms; the last was:\n${text}`)
    await sleep(50)
  }
}
