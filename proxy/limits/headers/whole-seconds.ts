/** A duration as response headers tell it. At least 1: a client told to wait 0 seconds asks again at once. */
export function wholeSeconds(durationMs: number): string {
  return String(Math.max(1, Math.ceil(durationMs / 1000)))
}
