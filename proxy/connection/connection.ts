import type { Socket } from 'node:net'
import { waitsSince } from './pending-responses.ts'
import { sessionOn } from './http2-sessions.ts'

/** A client's connection, as `limitConnections` has admitted it. */
export type Connection = {
  /** As it was accepted. With TLS, requests come over another one that is put around it. */
  readonly socket: Socket
  /** With TLS: that other one, once the handshake is over. */
  secured: Socket | undefined
  /** Monotonic milliseconds. */
  readonly openedMs: number
  /**
   * Whom it counts as, an IPv4 address or an IPv6 /64. Undefined for one of a trusted proxy, which may be anybody's: each
   * of those counts as a client of its own.
   */
  client: string | undefined
}

/**
 * Since when a connection has no request in flight: since the last one was answered, or since it was opened, be it that its
 * handshake or its first request is on its way. Undefined where there is one, and for a tunnel.
 */
export function idleSince({ socket, secured, openedMs }: Connection): number | undefined {
  const session = secured && sessionOn(secured)
  if (session) return session.open > 0 ? undefined : session.idleSinceMs
  return waitsSince(secured ?? socket, openedMs)
}
