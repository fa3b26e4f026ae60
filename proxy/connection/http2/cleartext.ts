import type { Http2Server } from 'node:http2'
import type { Socket } from 'node:net'
import { latestResponse, requestsBeforeNext } from '../pending-responses.ts'

/** What a client of HTTP/2 sends first (RFC 9113 section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** What Node's parser of HTTP/1 says of a connection when it has read the preface, and nothing else on it so far. */
export type PrefaceError = {
  /** The last read, whose first `bytesParsed` bytes end the preface. */
  readonly rawPacket: Buffer
  readonly bytesParsed: number
}

type Parser = { unconsume(): void; remove(): void }

/**
 * Whether an error of the parser says that the client speaks HTTP/2 without TLS by prior knowledge, and not behind a request of
 * HTTP/1: that preface would be content of the connection as others have read it.
 *
 * Leaving it to the parser costs a connection of HTTP/1 nothing. It takes any target in the preface: where that comes in several
 * reads, no more than the last is checked here, and nothing of it is a request.
 */
export function isPreface(error: NodeJS.ErrnoException, socket: Socket): error is PrefaceError & Error {
  if (error.code !== 'HPE_PAUSED_H2_UPGRADE') return false
  const { rawPacket, bytesParsed } = error as Partial<PrefaceError>
  if (!rawPacket || bytesParsed === undefined || !socket.writable) return false
  const isFirst = latestResponse(socket) === undefined && requestsBeforeNext(socket) === undefined
  return isFirst && endsWith(preface, rawPacket.subarray(0, bytesParsed))
}

function endsWith(bytes: Buffer, end: Buffer): boolean {
  return end.length <= bytes.length && bytes.subarray(bytes.length - end.length).equals(end)
}

/** Takes a connection off the parser of HTTP/1 and serves it with HTTP/2. */
export function serveHttp2(
  server: Http2Server,
  socket: Socket,
  { rawPacket, bytesParsed }: PrefaceError,
): void {
  const { parser } = socket as { parser?: Parser | null }
  // What else has come is read by the session, which reads from the system's socket after that.
  socket.pause()
  socket.removeAllListeners('data')
  socket.removeAllListeners('end')
  // As over TLS, a client that ends its direction counts as disconnected.
  socket.on('end', () => socket.destroy())
  parser?.unconsume()
  // The server no longer waits for the head of a request on it.
  parser?.remove()
  socket.unshift(Buffer.concat([preface, rawPacket.subarray(bytesParsed)]))
  server.emit('connection', socket)
  // Node's server of HTTP/1 may have stopped reading.
  socket._read(0)
}
