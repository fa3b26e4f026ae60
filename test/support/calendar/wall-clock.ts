/**
 * The wall clock. Redis, tokens, metrics and deadlines have its times. To measure how long something takes there is `performance.now`,
 * which nobody sets.
 */
export const wallClockMs = (): number => Date.now()
