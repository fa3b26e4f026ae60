/**
 * Calls back once the data that has arrived by now was read. Timers run first when a process was held up, and data that is only unread
 * must not be taken for late.
 */
export function afterInput(callback: () => void): void {
  setImmediate(callback)
}
