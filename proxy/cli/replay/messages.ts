import type { ClientRequest } from '../../http/message/client-request.ts'
import type { ResponseHead } from '../../http/upstream/response/response-head.ts'
import type { LoggedRequest } from './logs/logged-request.ts'

/** A response of which only the status is known, by which the gateway settles reservations. */
export function headOf(status: number): ResponseHead {
  const framing = { kind: 'none' } as const
  return { status, fields: [], framing, persistent: true, keepAliveMs: undefined, upgrade: undefined }
}

/** A request as the steps read it: HTTP/1.0 where its host is unknown, which need not have one. */
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
