import type { Server, ServerResponse } from 'node:http'
import type { Http2SecureServer } from 'node:http2'
import { Server as NetServer } from 'node:net'
import type { ConnectionGate } from './edge/connection-gate.ts'
import type { Http2Sessions } from './edge/http2-sessions.ts'

/** How often connections that have fallen idle are closed while the others finish. */
const sweepMs = 50
/** How long requests may still arrive on a connection of HTTP/2 whose client has been told that it ends. */
const longestNoticeMs = 500

/** From now on each client is told with its response that the connection ends with it (RFC 9112 section 9.6). */
export function endAfterResponses(server: Server | Http2SecureServer): void {
  server.prependListener('request', (_, response: ServerResponse) => {
    response.shouldKeepAlive = false
  })
}

/**
 * Ends a server in order: takes no more connections, lets what is in flight finish for up to `graceMs`, then cuts off
 * what is left. Resolves when nothing is.
 */
export function drain(
  server: Server | Http2SecureServer,
  { gate, sessions }: { readonly gate: ConnectionGate; readonly sessions: Http2Sessions },
  graceMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const closeIdle = (): void => {
      if ('closeIdleConnections' in server) server.closeIdleConnections()
      gate.closeUnused()
    }
    const sweep = setInterval(closeIdle, sweepMs)
    const cutOff = setTimeout(() => {
      sessions.destroy()
      gate.closeAll()
    }, graceMs)
    sessions.close(Math.min(longestNoticeMs, graceMs / 2))
    closeIdle()
    // The close of any server: that of HTTP/2 refuses requests on open connections at once.
    NetServer.prototype.close.call(server, () => {
      clearInterval(sweep)
      clearTimeout(cutOff)
      resolve()
    })
  })
}
