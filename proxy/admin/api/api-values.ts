/** As replies have durations: to the millisecond, rounded up. */
export function toSeconds(durationMs: number): number {
  return Math.ceil(durationMs) / 1000
}
