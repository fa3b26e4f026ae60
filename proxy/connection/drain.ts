import type { Server } from 'node:http'
import type { Http2SecureServer } from 'node:http2'
import { Server as NetServer, type Socket } from 'node:net'
import type { Log } from '../../shared/log.ts'
import { closeAfterResponse, closeSoon } from '../http/reply.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { idleSince } from './connection.ts'
import type { Http2Sessions } from './http2/sessions.ts'
import { latestResponse, owesNothing } from './pending-responses.ts'

/** How often connections that have fallen idle are closed while the others finish. */
const sweepMs = 50
/** How long requests may still arrive on a connection of HTTP/2 whose client has been told that it ends. */
const longestNoticeMs = 500

type ClientServer = Server | Http2SecureServer

export type Draining = {
  readonly connectionLimit: ConnectionLimit
  readonly sessions: Http2Sessions
  readonly log: Log
}

/**
 * From now on every response tells its client that the connection closes (RFC 9112 section 9.6), also those to requests
 * in flight, unless the response has begun.
 */
export function endAfterResponses(server: ClientServer, connectionLimit: ConnectionLimit): void {
  for (const event of ['request', 'checkContinue', 'checkExpectation'])
    server.prependListener(event, closeAfterResponse)
  for (const socket of socketsOf(connectionLimit)) {
    const response = latestResponse(socket)
    if (response && !response.headersSent) closeAfterResponse(response.req, response)
  }
}

/**
 * Closes a server gracefully: accepts no more connections, lets requests in flight finish for up to `graceMs`, then
 * closes the remaining connections. Resolves when none is left.
 */
export function drain(
  server: ClientServer,
  { connectionLimit, sessions, log }: Draining,
  graceMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const closeUnused = (): void => {
      connectionLimit.closeUnused()
      // With TLS the handshake may have brought bytes, and nothing else has come.
      for (const socket of socketsOf(connectionLimit)) if (socket.bytesRead === 0) socket.destroy()
    }
    const sweep = setInterval(() => {
      // It was answered a moment ago: the client may have sent another request, and may still be reading.
      for (const socket of betweenRequests(server, connectionLimit)) if (socket.writable) closeSoon(socket)
      closeUnused()
    }, sweepMs)
    const cutOff = setTimeout(() => {
      const connections = Array.from(connectionLimit.connections).filter(
        (each) => idleSince(each) === undefined,
      ).length
      if (connections > 0)
        log.warn({ connections }, 'SHUTDOWN_GRACE expired: closed the remaining connections')
      sessions.destroy()
      connectionLimit.closeAll()
    }, graceMs)
    sessions.close(Math.min(longestNoticeMs, graceMs / 2))
    for (const socket of betweenRequests(server, connectionLimit)) socket.destroy()
    closeUnused()
    // The close of any server: that of HTTP/2 refuses requests on open connections at once.
    NetServer.prototype.close.call(server, () => {
      clearInterval(sweep)
      clearTimeout(cutOff)
      resolve()
    })
  })
}

/**
 * The connections of HTTP/1 on which no request is in flight, not even a part of its head, and every response has been sent.
 * Only Node's parser knows the former, and has no API for it: Node is told to close idle connections and kept from doing so.
 * It takes one for idle once `response.end()` was called, although much of the response may still wait for the client.
 */
function betweenRequests(server: ClientServer, connectionLimit: ConnectionLimit): Socket[] {
  if (!('closeIdleConnections' in server)) return []
  const idle: Socket[] = []
  const note = function (this: Socket): Socket {
    if (owesNothing(this)) idle.push(this)
    return this
  }
  const sockets = socketsOf(connectionLimit)
  for (const socket of sockets) socket.destroy = note
  server.closeIdleConnections()
  for (const socket of sockets) Reflect.deleteProperty(socket, 'destroy')
  return idle
}

/** With TLS, the connections that TLS was put around. */
function socketsOf({ connections }: ConnectionLimit): Socket[] {
  return Array.from(connections, ({ socket, secured }) => secured ?? socket)
}
