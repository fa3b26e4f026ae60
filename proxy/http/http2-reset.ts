import type { Http2ServerRequest, Http2Session, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { ClientRequest } from './messages.ts'

type Connection = { readonly socket: Socket; readonly sendMs: number }

/** Sessions let nobody destroy their sockets, so these are kept beside them. */
const connections = new WeakMap<Http2Session, Connection>()

/**
 * Notes the socket of a session, so that streams on it can be reset.
 *
 * @param sendMs milliseconds in which the client must take what it is sent
 */
export function noteSocket(session: Http2Session, socket: Socket, sendMs: number): void {
  connections.set(session, { socket, sendMs })
}

/**
 * Resets a stream. A client that does not read takes no reset either, and Node keeps the stream until it has: then the
 * connection is cut off.
 */
export function resetStream(stream: ServerHttp2Stream, code: number): void {
  const connection = stream.session && connections.get(stream.session)
  stream.close(code)
  if (!connection) return
  const cutOff = setTimeout(() => connection.socket.destroy(), connection.sendMs).unref()
  stream.once('close', () => clearTimeout(cutOff))
}

/** Ends the connection of a stream, and all other streams on it, at once. */
export function destroyConnection({ session }: ServerHttp2Stream): void {
  if (session) connections.get(session)?.socket.destroy()
}

/** The client has reset the stream of HTTP/2 that a request came on: what has arrived of its body ends too. */
export function wasTakenBack(request: ClientRequest | Http2ServerRequest): boolean {
  return 'stream' in request && request.stream.closed
}
