import { Socket } from 'node:net'
import type { GatewaySettings } from '../../config/settings.ts'
import { faultOf } from '../../http/connection/http1/faults.ts'
import type { ClientRequest } from '../../http/message/client-request.ts'
import { RequestParser } from '../../http/http1/parser/request-parser.ts'
import { Http1Request } from '../../http/http1/request.ts'
import { RequestSyntaxError } from '../../http/http1/parser/syntax-error.ts'
import { takesUpgrade } from '../../server/http1-handlers.ts'

/** A parsed request, or the reason why it was rejected. */
export type ParsedRequest =
  | { readonly request: ClientRequest; readonly upgrades: boolean }
  | { readonly status: number; readonly reason: string }

/**
 * Parses the head of a request with the parser for client connections, so that repeated headers and malformed requests get the same
 * treatment.
 *
 * @param head the request line and the headers, one character per byte
 */
export function parseRequest(
  { maxHeaderBytes, maxHeaderCount, upgradeProtocols }: GatewaySettings,
  head: string,
): ParsedRequest {
  let parsed: Http1Request | undefined
  const parser = new RequestParser(
    {
      onHead: (read) => (parsed = new Http1Request(new Socket(), read, { onBodyConsumed: () => undefined })),
      onBody: () => undefined,
      onBodyEnd: () => undefined,
    },
    { maxBytes: maxHeaderBytes, maxFields: maxHeaderCount },
  )
  try {
    parser.execute(Buffer.from(head, 'latin1'), 0)
  } catch (error) {
    if (!(error instanceof RequestSyntaxError)) throw error
    const { reply, reason } = faultOf(error)
    return { status: reply.status, reason }
  }
  if (!parsed) return { status: 400, reason: 'the head is incomplete' }
  if (parsed.method === 'CONNECT') return { status: 405, reason: 'CONNECT is not supported' }
  return { request: parsed, upgrades: takesUpgrade(parsed, upgradeProtocols) }
}
