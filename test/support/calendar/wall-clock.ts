/**
 * The wall clock, which Redis, tokens, metrics and deadlines use. To measure how long something takes, use `performance.now`: changes of
 * the system clock do not affect it.
 */
export const wallClockMs = (): number => Date.now()
