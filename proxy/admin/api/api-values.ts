/** Converts milliseconds to seconds for a reply, rounded up to the millisecond. */
export function toSeconds(durationMs: number): number {
  return Math.ceil(durationMs) / 1000
}
