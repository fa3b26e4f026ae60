import type { Server, Socket } from 'node:net'
import type { Log } from '../../../shared/log.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { idleSince } from './connection.ts'
import type { Http1Connections } from './http1/connections.ts'
import type { Http2Connections } from './http2/connections.ts'

/** How often connections that have become idle are closed while the others finish. */
const SWEEP_MS = 50
/** How long requests may still arrive on an HTTP/2 connection after its GOAWAY. */
const MAX_NOTICE_MS = 500

export type Draining = {
  readonly connectionLimit: ConnectionLimit
  readonly http1: Http1Connections
  readonly http2: Pick<Http2Connections, 'close' | 'destroy'>
  readonly log: Log
}

/**
 * Closes a server gracefully: accepts no more connections, lets requests in flight finish for up to `graceMs`, then closes the remaining
 * connections. Resolves when no connection is left. Sockets that were destroyed then have not emitted 'close' yet (`untilClosed`).
 */
export function drain(
  server: Server,
  { connectionLimit, http1, http2, log }: Draining,
  graceMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const closeUnused = (): void => {
      connectionLimit.closeUnused()
      // With TLS, the socket beneath has received the handshake, even if no request has been received.
      for (const socket of socketsOf(connectionLimit)) if (socket.bytesRead === 0) socket.destroy()
    }
    const sweep = setInterval(() => {
      // A request may have been answered a moment ago: its client may still be reading, or may have sent another request.
      for (const connection of http1.betweenRequests()) connection.closeSoon()
      closeUnused()
    }, SWEEP_MS)
    const cutOff = setTimeout(() => {
      const connections = Array.from(connectionLimit.connections).filter(
        (each) => idleSince(each) === undefined,
      ).length
      if (connections > 0)
        log.warn({ connections }, 'SHUTDOWN_GRACE expired: closed the remaining connections')
      http2.destroy()
      connectionLimit.closeAll()
    }, graceMs)
    http2.close(Math.min(MAX_NOTICE_MS, graceMs / 2))
    for (const { socket } of http1.betweenRequests()) socket.destroy()
    closeUnused()
    server.close(() => {
      clearInterval(sweep)
      clearTimeout(cutOff)
      http1.close()
      resolve()
    })
  })
}

/** Resolves when the sockets of all connections have emitted 'close', with which their requests end. */
export async function untilClosed({ connections }: Pick<ConnectionLimit, 'connections'>): Promise<void> {
  const closed = Array.from(
    connections,
    ({ socket }) => new Promise<void>((resolve) => socket.once('close', () => resolve())),
  )
  await Promise.all(closed)
}

/** The sockets of the connections: with TLS, the TLS sockets. */
function socketsOf({ connections }: ConnectionLimit): Socket[] {
  return Array.from(connections, ({ socket, secured }) => secured ?? socket)
}
