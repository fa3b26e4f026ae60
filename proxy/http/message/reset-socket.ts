import type { Socket } from 'node:net'

/**
 * Closes a connection with RST, so that an incomplete response does not look complete.
 *
 * After `end()`, once the operating system has all bytes, it closes without a reset, because nothing is missing. libuv refuses a reset
 * while a shutdown is pending (`uv_tcp_close_reset`), and Node would keep the file descriptor until the process ends.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return
  if (socket.writableEnded && socket.writableLength === 0) socket.destroy()
  else socket.resetAndDestroy()
}
