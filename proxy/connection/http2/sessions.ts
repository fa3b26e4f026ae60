import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { Server, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { noteSocket } from '../../http/http2-reset.ts'

export type SessionLimits = {
  /** Time to keep an idle client connection open (keep-alive). */
  readonly idleMs: number
  /** The same before its first request. */
  readonly firstRequestMs: number
  /** Requests that a connection may bring; 0 is no limit. */
  readonly maxRequests: number
  /** Time in which the client must take what it is sent. */
  readonly sendMs: number
}

/** Manages HTTP/2 connections, as Node's HTTP/1 server does for its own. */
export type Http2Sessions = {
  /**
   * Ends them in order: no new requests, at once or after a moment in which those may arrive that the client has sent
   * before it could know (RFC 9113 section 6.8).
   */
  close(noticeMs: number): void
  /** Ends them now. */
  destroy(): void
}

type Use = {
  readonly session: ServerHttp2Session
  readonly socket: Socket | undefined
  open: number
  requests: number
  idleSinceMs: number
}

const usesOfSockets = new WeakMap<Socket, Use>()

const sweepMs = 1_000
/** How long a client may take to close its connection after a GOAWAY. */
const lingerMs = 2_000
/** The last stream of any connection: a GOAWAY that names it asks for no new ones but refuses none. */
const lastStream = 2 ** 31 - 1

/**
 * Closes idle HTTP/2 sessions of a server, with one periodic check of all. A client that does not close its connection
 * after the GOAWAY is disconnected: Node would wait for it without limit.
 *
 * @param now monotonic milliseconds
 */
export function superviseSessions(server: Server, limits: SessionLimits, now: () => number): Http2Sessions {
  const { idleMs, firstRequestMs, maxRequests, sendMs } = limits
  const sessions = new Map<ServerHttp2Session, Use>()
  // `session` is emitted within this event.
  let newest: Socket | undefined

  server.prependListener(
    server instanceof TlsServer ? 'secureConnection' : 'connection',
    (socket: Socket) => (newest = socket),
  )
  server.on('session', (session: ServerHttp2Session) => {
    const use: Use = { session, socket: newest, open: 0, requests: 0, idleSinceMs: now() }
    sessions.set(session, use)
    if (newest) {
      usesOfSockets.set(newest, use)
      noteSocket(session, newest, sendMs)
    }
    session.on('close', () => sessions.delete(session))
    session.on('stream', (stream: ServerHttp2Stream) => {
      use.open++
      if (++use.requests === maxRequests) session.close()
      stream.on('close', () => {
        use.open--
        use.idleSinceMs = now()
      })
    })
  })
  const sweep = setInterval(
    () => {
      const nowMs = now()
      for (const [session, { socket, open, requests, idleSinceMs }] of sessions) {
        if (open > 0) continue
        const overdueMs = nowMs - idleSinceMs - (requests === 0 ? firstRequestMs : idleMs)
        if (overdueMs >= lingerMs) socket?.destroy()
        else if (overdueMs >= 0) session.close()
      }
    },
    Math.min(sweepMs, idleMs / 4, firstRequestMs / 4),
  )
  sweep.unref()

  const closeAll = (): void => {
    for (const session of sessions.keys()) session.close()
  }
  return {
    close(noticeMs) {
      clearInterval(sweep)
      // A destroyed session throws. It is listed until its client has closed the connection.
      for (const session of sessions.keys()) if (!session.destroyed) session.goaway(0, lastStream)
      setTimeout(closeAll, noticeMs).unref()
    },
    destroy() {
      for (const session of sessions.keys()) session.destroy()
    },
  }
}

/** The session on a socket, which with TLS is the one around the system's, how many requests are open on it, and since when there is none. */
export function sessionOn(socket: Socket): Pick<Use, 'session' | 'open' | 'idleSinceMs'> | undefined {
  return usesOfSockets.get(socket)
}
