import type { Http2Server } from 'node:http2'
import type { Socket } from 'node:net'

/**
 * Serves a connection on which the client speaks HTTP/2 without TLS by prior knowledge (RFC 9113 section 3.3).
 *
 * @param socket paused, without listeners
 * @param bytes all that has come, the preface of HTTP/2 included
 */
export function servePreface(server: Http2Server, socket: Socket, bytes: Buffer): void {
  // As over TLS, a client that ends its direction counts as disconnected.
  socket.on('end', () => socket.destroy())
  // What else has come is read by the session, which reads from the system's socket after that.
  socket.unshift(bytes)
  server.emit('connection', socket)
}
