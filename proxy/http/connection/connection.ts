import type { Socket } from 'node:net'
import { http1On } from '../http1/connection.ts'
import { http2ConnectionOn } from './http2/connections.ts'

/** A client's connection, as `ConnectionLimit` has admitted it. */
export type Connection = {
  /** The accepted socket. With TLS, requests come over `secured`. */
  readonly socket: Socket
  /** The TLS socket around it, once the handshake is done; undefined before that, and without TLS. */
  secured: Socket | undefined
  /** Monotonic milliseconds. */
  readonly openedMs: number
  /** Bytes received up to the end of the PROXY header; 0 without one. */
  headerBytes: number
  /**
   * The client that the connection counts for: an IPv4 address or an IPv6 network. Undefined for a connection of a trusted proxy, whose
   * client is unknown. Each such connection counts as a client of its own.
   */
  client: string | undefined
}

/**
 * Returns since when a connection is idle, which means without a request in flight: since its last request was answered, or since it was
 * opened. A connection stays idle while a handshake or a request head arrives. Returns undefined during a request, and for a tunnel.
 */
export function idleSince({ socket, secured, openedMs }: Connection): number | undefined {
  const http2 = http2ConnectionOn(secured ?? socket)
  if (http2) return http2.openRequests > 0 ? undefined : http2.idleSinceMs
  const http1 = http1On(secured ?? socket)
  return http1 ? http1.idleSinceMs : openedMs
}
