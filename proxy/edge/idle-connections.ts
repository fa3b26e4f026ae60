import type { Server, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'

export type IdleLimits = {
  /** Time that a connection is kept between two requests. */
  readonly idleMs: number
  /** Time in which a request's head must be there once it has begun. */
  readonly headersMs: number
  /** How many requests a connection has brought, where it waits for the next; undefined where it does not. */
  readonly requestsBeforeNext: (socket: Socket) => number | undefined
}

type Idle = { requests: number; sinceMs: number }

const sweepMs = 1_000
/** Node keeps connections for a second longer than it is told to, and looks for late heads now and then. */
const graceMs = 2_000

/**
 * Ends connections of HTTP/1.1 that wait for a request for too long although something comes. Node's own timeout begins
 * anew with every byte, and empty lines before a request are to be ignored (RFC 9112 section 2.2): with one now and then a
 * client could keep a connection for ever. What has begun within the idle time, though, is a request or has been
 * answered once the time for a head is over too.
 *
 * One sweep looks at all connections, so that no request needs a timer.
 *
 * @param now monotonic milliseconds
 */
export function endIdleConnections(server: Server, limits: IdleLimits, now: () => number): void {
  const { idleMs, headersMs, requestsBeforeNext } = limits
  const connections = new Map<Socket, Idle>()
  const watch = (socket: Socket): void => {
    connections.set(socket, { requests: 0, sinceMs: 0 })
    socket.once('close', () => connections.delete(socket))
  }
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', watch)

  const look = (socket: Socket, idle: Idle, nowMs: number): void => {
    const requests = requestsBeforeNext(socket) ?? 0
    if (requests !== idle.requests) Object.assign(idle, { requests, sinceMs: nowMs })
    else if (requests > 0 && nowMs - idle.sinceMs > idleMs + headersMs + graceMs) socket.destroy()
  }
  const sweep = setInterval(
    () => {
      const nowMs = now()
      for (const [socket, idle] of connections) look(socket, idle, nowMs)
    },
    Math.min(sweepMs, idleMs / 4),
  )
  sweep.unref()
}
