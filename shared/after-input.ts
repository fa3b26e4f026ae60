/**
 * Calls back once all data that has arrived by now has been read. After a pause of the process its due timers run before its sockets are
 * read: an answer that is merely unread must not count as late.
 */
export function afterInput(callback: () => void): void {
  setImmediate(callback)
}
