import type { Socket } from 'node:net'

/** How long the client's bytes are read and dropped after the last byte has been sent. */
const LINGER_MS = 2_000
/** How long the client may take to read the bytes written before. */
const READ_MS = 60_000

/**
 * Closes a connection so that the bytes written to it arrive (nginx calls this lingering close): waits a moment for the client to close it
 * too. The caller must continue to read and drop data; otherwise the operating system would reset the connection.
 */
export function closeSoon(socket: Socket): void {
  const destroy = (): void => void socket.destroy()
  let timer = setTimeout(destroy, READ_MS)
  const linger = (): void => {
    clearTimeout(timer)
    timer = setTimeout(destroy, LINGER_MS)
  }
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
  socket.end()
  if (socket.writableFinished) linger()
  else socket.once('finish', linger)
}
