import type { Socket } from 'node:net'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { closeAfterResponse } from '../http/reply.ts'

/** Maximum number of requests of one connection that wait for their turn; then reading pauses. */
const mostWaiting = 16

/** Calls `serve` when it is the request's turn, or never if its connection closes before. */
export type RequestSerializer = (request: ClientRequest, response: ClientResponse, serve: () => void) => void

type Use = { waiting: number; served: number }

/**
 * Serves pipelined requests of an HTTP/1.1 connection one after another, as they are answered (RFC 9112 section 9.3.2).
 * Otherwise a client that pipelines could take any number of connections to the backend, and a request could be
 * executed whose response cannot be sent, because the one before it closes the connection.
 *
 * @param maxRequests that a connection may bring; 0 is no limit. The last answer ends the connection
 */
export function serializeRequests(maxRequests: number): RequestSerializer {
  const uses = new WeakMap<Socket, Use>()
  const useOf = (socket: Socket): Use => {
    let use = uses.get(socket)
    if (!use) uses.set(socket, (use = { waiting: 0, served: 0 }))
    return use
  }
  const begin = (request: ClientRequest, response: ClientResponse, serve: () => void): void => {
    if (maxRequests > 0 && ++useOf(request.socket).served >= maxRequests)
      closeAfterResponse(request, response)
    serve()
  }

  return (request, response, serve) => {
    if (request.httpVersionMajor > 1) {
      serve()
      return
    }
    const { socket } = request
    // A response of HTTP/1.1 has the socket once those before it are over.
    if (response.socket) {
      begin(request, response, serve)
      return
    }
    const use = useOf(socket)
    use.waiting++
    // Not at once: Node is about to begin reading for the request that it has just made. What is answered here may have
    // been answered by then, and nothing would resume what is paused behind it. Nor is anything paused that is only
    // read to its end.
    if (use.waiting >= mostWaiting)
      process.nextTick(() => {
        if (use.waiting >= mostWaiting && socket.writable) socket.pause()
      })
    response.once('socket', () => {
      use.waiting--
      if (use.waiting === mostWaiting - 1) socket.resume()
      begin(request, response, serve)
    })
  }
}
