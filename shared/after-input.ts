/**
 * Calls back once what has arrived by now was read. Timers run first when a process was held up, and what is only unread
 * must not be taken for late.
 */
export function afterInput(callback: () => void): void {
  setImmediate(callback)
}
