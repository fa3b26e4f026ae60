import type { Socket } from 'node:net'

/** How long the client's bytes are still read and dropped after a response that closes the connection. */
const lingerMs = 2_000
/** How long the client may take to read the bytes written before. */
const takeMs = 60_000

/**
 * Ends a connection such that the bytes written on it arrive, but does not wait long for the client to end it too. Data that still
 * comes has to be read, as the system would reset the connection otherwise: that is up to the caller.
 */
export function closeSoon(socket: Socket): void {
  const destroy = (): void => void socket.destroy()
  let timer = setTimeout(destroy, takeMs)
  const linger = (): void => {
    clearTimeout(timer)
    timer = setTimeout(destroy, lingerMs)
  }
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
  socket.end()
  if (socket.writableFinished) linger()
  else socket.once('finish', linger)
}
