import type { Writable } from 'node:stream'
import type { UpstreamRequest } from './exchange.ts'

/** The head of an HTTP/1.1 request, with the empty line; one character per byte. */
export function writeRequestHead({
  method,
  target,
  fields,
  hasBody,
  contentLength,
  upgrade,
}: UpstreamRequest): string {
  const { names, values } = fields
  let text = `${method} ${target} HTTP/1.1`
  for (let i = 0; i < names.length; i++) text += `${names[i]?.line ?? ''}${values[i] ?? ''}`
  if (upgrade !== undefined) text += `\r\nconnection: upgrade\r\nupgrade: ${upgrade}`
  if (contentLength !== undefined) text += `\r\ncontent-length: ${contentLength}`
  else if (hasBody) text += '\r\ntransfer-encoding: chunked'
  return `${text}\r\n\r\n`
}

/** Writes one chunk (RFC 9112 section 7.1), in one write. */
export function writeChunk(socket: Writable, chunk: Buffer): void {
  socket.cork()
  socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
  socket.write(chunk)
  socket.write('\r\n', 'latin1')
  socket.uncork()
}

/** Writes the last chunk, which ends the body (RFC 9112 section 7.1). Trailers are not sent. */
export function writeLastChunk(socket: Writable): void {
  socket.write('0\r\n\r\n', 'latin1')
}
