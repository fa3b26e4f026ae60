import type { Socket } from 'node:net'
import { Http2Connection, type Http2Options } from '../../http2/connection.ts'
import { OversizeMemories } from '../../http2/header-block.ts'

export type Http2Limits = Pick<Http2Options, 'maxHeaderBytes' | 'maxStreams' | 'sendMs'> & {
  /** Time to keep an idle client connection open (keep-alive). */
  readonly idleMs: number
  /** Time to keep a connection open before its first request; also the time in which a header block must be complete. */
  readonly headersMs: number
}

/** Handlers for requests, and for input that is not a request. */
export type Http2Handlers = Omit<Http2Options, keyof Http2Limits | 'now' | 'oversizeMemoryOf'> & {
  /** Whether the peer is a trusted proxy, which sends the requests of many clients over a connection. */
  isProxy(socket: Socket): boolean
}

/** The HTTP/2 connections. */
export type Http2Connections = {
  /**
   * Serves a connection.
   *
   * @param socket no other code may read from it
   * @param first bytes already read from it, from the preface on
   */
  serve(socket: Socket, first?: Buffer): void
  /**
   * Closes the connections gracefully: they accept no new requests after `noticeMs`. Until then, requests may arrive that the client sent
   * before it received the GOAWAY frame (RFC 9113 section 6.8).
   */
  close(noticeMs: number): void
  /** Closes the connections at once. */
  destroy(): void
}

const SWEEP_MS = 1_000

const connectionsOfSockets = new WeakMap<Socket, Http2Connection>()

/** Serves HTTP/2. One periodic check of all connections closes idle ones. */
export function createHttp2Connections(
  { idleMs, headersMs, ...limits }: Http2Limits,
  handlers: Http2Handlers,
  now: () => number,
): Http2Connections {
  const { ofClients, ofProxies } = new OversizeMemories(limits.maxHeaderBytes)
  const options: Http2Options = {
    ...limits,
    ...handlers,
    now,
    oversizeMemoryOf: (socket) => (handlers.isProxy(socket) ? ofProxies : ofClients),
  }
  const connections = new Set<Http2Connection>()
  /** Set while no new requests are accepted. */
  let closing: { readonly noticeMs: number } | undefined
  const sweep = setInterval(
    () => {
      const nowMs = now()
      for (const connection of connections) {
        const { openRequests, requests, idleSinceMs, partSinceMs = nowMs } = connection
        if (nowMs - partSinceMs >= headersMs) connection.closeNow()
        else if (openRequests > 0) continue
        else if (nowMs - idleSinceMs >= (requests === 0 ? headersMs : idleMs)) connection.close()
      }
    },
    Math.min(SWEEP_MS, idleMs / 4, headersMs / 4),
  )
  sweep.unref()

  return {
    serve(socket, first) {
      const connection = new Http2Connection(socket, options)
      connections.add(connection)
      connectionsOfSockets.set(socket, connection)
      socket.once('close', () => connections.delete(connection))
      if (closing) closeSoon([connection], closing.noticeMs)
      if (first) connection.read(first)
      socket.resume()
    },
    close(noticeMs) {
      closing = { noticeMs }
      clearInterval(sweep)
      closeSoon([...connections], noticeMs)
    },
    destroy() {
      for (const connection of connections) connection.closeNow()
    },
  }
}

/** Announces that the connections will close, and closes them `noticeMs` later. */
function closeSoon(connections: readonly Http2Connection[], noticeMs: number): void {
  for (const connection of connections) connection.announceClose()
  setTimeout(() => {
    for (const connection of connections) connection.close()
  }, noticeMs).unref()
}

/** The HTTP/2 connection on a socket; with TLS, on the TLS socket, not on the accepted one. */
export function http2ConnectionOn(socket: Socket): Http2Connection | undefined {
  return connectionsOfSockets.get(socket)
}
