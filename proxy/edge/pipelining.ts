import type { Socket } from 'node:net'
import type { ClientRequest, ClientResponse } from '../reply.ts'

/** Requests of one connection that have been read and wait, before reading stops. */
const mostWaiting = 16

const waiting = new WeakMap<Socket, number>()

/**
 * Serves the requests of a connection of HTTP/1.1 one after another, as they are answered (RFC 9112 section 9.3.2). A
 * client that sends many at once would otherwise have as many connections to the backend as it likes, and requests
 * would be carried out whose answer cannot be sent, because the one before it ends the connection.
 */
export function serveInTurn(request: ClientRequest, response: ClientResponse, serve: () => void): void {
  // A response of HTTP/1.1 has the socket once those before it are over.
  if (request.httpVersionMajor > 1 || response.socket) {
    serve()
    return
  }
  const { socket } = request
  const count = (waiting.get(socket) ?? 0) + 1
  waiting.set(socket, count)
  // Not at once: Node is about to begin reading for the request that it has just made.
  if (count >= mostWaiting) process.nextTick(() => socket.pause())
  response.once('socket', () => {
    const left = (waiting.get(socket) ?? 1) - 1
    waiting.set(socket, left)
    if (left === mostWaiting - 1) socket.resume()
    serve()
  })
}
