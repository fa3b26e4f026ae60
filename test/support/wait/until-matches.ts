import { setTimeout as sleep } from 'node:timers/promises'

/** Reads a text repeatedly until it matches. Rejects with the last text if it does not match in time. */
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
