/**
 * Calls back once the process has read all data that has arrived by now. After a pause, the event loop runs due timers before it reads
 * sockets, and an answer that has arrived but is still unread must not count as late.
 */
export function afterInput(callback: () => void): void {
  setImmediate(callback)
}
