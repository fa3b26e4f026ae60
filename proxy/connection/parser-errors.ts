import type { Socket } from 'node:net'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import { breakOff, closeAfterResponse, closeSoon, sendError } from '../http/reply.ts'
import type { Rejection } from '../telemetry/telemetry.ts'
import { latestResponse } from './pending-responses.ts'

/** An error of Node's parser: the reply to send and the reason to count. */
export type ParserFailure = {
  readonly reply: ErrorReply
  readonly rejection: Rejection
  /** For the log: the parser's own words, without anything of the request. */
  readonly why: string
}

/** The parser was paused and has read none of this: not an error of the client. */
export function isPaused(
  error: NodeJS.ErrnoException,
): error is NodeJS.ErrnoException & { rawPacket: Buffer } {
  return error.code === 'HPE_PAUSED' && 'rawPacket' in error && Buffer.isBuffer(error.rawPacket)
}

/** @returns undefined for an error of the connection itself, on which nothing can be sent any more */
export function readParserError({ code = '', message }: NodeJS.ErrnoException): ParserFailure | undefined {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        reply: errors.fieldsTooLarge,
        rejection: 'headers-too-large',
        why: 'the head is too large (MAX_HEADER_SIZE)',
      }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return {
        reply: errors.bodyTooLarge,
        rejection: 'body-too-large',
        why: 'a chunk extension is too large',
      }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return {
        reply: errors.requestTimeout,
        rejection: 'timeout',
        why: 'the request did not arrive in time (HEADERS_TIMEOUT)',
      }
    default:
      return code.startsWith('HPE_')
        ? { reply: errors.badRequest, rejection: 'framing', why: `${code}: ${message}` }
        : undefined
  }
}

/**
 * Answers data that could not be parsed and closes the connection, as what follows cannot be trusted. Responses to
 * earlier requests on the connection are sent first, so that no client takes the error for one of them (RFC 9112
 * section 9.3.2).
 */
export function answerParserError(socket: Socket, reply: ErrorReply, fields: readonly string[] = []): void {
  const response = latestResponse(socket)
  if (!response || (response.req.complete && response.destroyed)) endWith(socket, reply, fields)
  else if (response.req.complete) response.once('close', () => endWith(socket, reply, fields))
  else if (response.destroyed) end(socket)
  else if (!response.headersSent) {
    closeAfterResponse(response.req, response)
    sendError(response.req, response, reply)
  } else if (response.writableEnded) response.once('close', () => end(socket))
  else breakOff(response)
}

/** Writes a response by hand, as Node makes no response object for what it could not read. */
function endWith(socket: Socket, { status, reason, body }: ErrorReply, fields: readonly string[]): void {
  if (!socket.writable) return
  let lines = `content-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n`
  for (let i = 0; i < fields.length; i += 2) lines += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`
  socket.write(`HTTP/1.1 ${status} ${reason}\r\n${lines}\r\n${body.toString()}`)
  end(socket)
}

function end(socket: Socket): void {
  // Errors of a socket that Node has let go of are ours; each is followed by `close`.
  socket.on('error', () => undefined)
  closeSoon(socket)
}
