import type { ClientRequest } from '../../http/message/client-request.ts'
import type { ResponseHead } from '../../http/upstream/response/response-head.ts'
import type { LoggedRequest } from './logs/logged-request.ts'

/** Makes the head of a response of which only the status is known. The gateway settles reservations by it. */
export function headOf(status: number): ResponseHead {
  const framing = { kind: 'none' } as const
  return { status, fields: [], framing, persistent: true, keepAliveMs: undefined, upgrade: undefined }
}

/**
 * Converts a logged request to a request for `decideRequest`. Its version is HTTP/1.0 if the host is unknown, because only HTTP/1.0
 * requests need no host.
 */
export function toClientRequest({ method, target, host, headers }: LoggedRequest): ClientRequest {
  const rawHeaders: string[] = host === undefined ? [] : ['host', host]
  for (const name in headers) rawHeaders.push(name, headers[name] ?? '')
  return {
    method,
    url: target,
    httpVersion: host === undefined ? '1.0' : '1.1',
    httpVersionMajor: 1,
    rawHeaders,
    headers,
  } as Partial<ClientRequest> as ClientRequest
}
