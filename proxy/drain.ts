import type { Server, ServerResponse } from 'node:http'
import type { Http2SecureServer, ServerHttp2Session } from 'node:http2'

export type ClientServer = Server | Http2SecureServer

/** How often connections that have fallen idle are closed while the others finish. */
const sweepMs = 50

/**
 * Prepares a server to be ended in order.
 *
 * @returns a function that stops taking connections, lets what is in flight finish for up to `graceMs`, then cuts off
 *   what is left, and resolves when nothing is
 */
export function drainable(server: ClientServer): (graceMs: number) => Promise<void> {
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })

  return (graceMs) =>
    new Promise((resolve) => {
      // The client is told with its response that the connection ends here (RFC 9112 section 9.6).
      server.prependListener('request', (_, response: ServerResponse) => {
        response.shouldKeepAlive = false
      })
      const closeIdle = (): void => {
        if ('closeIdleConnections' in server) server.closeIdleConnections()
      }
      const sweep = setInterval(closeIdle, sweepMs)
      const cutOff = setTimeout(() => {
        for (const session of sessions) session.destroy()
        if ('closeAllConnections' in server) server.closeAllConnections()
      }, graceMs)
      server.close(() => {
        clearInterval(sweep)
        clearTimeout(cutOff)
        resolve()
      })
      // GOAWAY: streams that are open finish, new ones are refused (RFC 9113 section 6.8).
      for (const session of sessions) session.close()
      closeIdle()
    })
}
