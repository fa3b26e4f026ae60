import { hash } from 'node:crypto'
import { linesOf } from '../message/headers.ts'
import type { ClientRequest } from '../message/client-request.ts'

// RFC 6455 section 4.1: 16 bytes in base64.
const webSocketKey = /^[A-Za-z0-9+/]{22}==$/

// RFC 6455 section 1.3: the digest is made of the key and this GUID.
const webSocketGuid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** Whether the request offers to become a WebSocket, well-formed or not. An HTTP/1.0 request cannot (RFC 9110 section 7.8). */
export function offersWebSocket(request: ClientRequest): boolean {
  return offeredProtocol(request) === 'websocket'
}

/**
 * The protocol that the request offers to switch to, in lower case. A list of protocols is ignored: only the backend knows which
 * it would choose.
 */
export function offeredProtocol({ headers, httpVersion }: ClientRequest): string | undefined {
  if (httpVersion !== '1.1' || !/(?:^|,)\s*upgrade\s*(?:,|$)/i.test(headers.connection ?? ''))
    return undefined
  return headers.upgrade?.toLowerCase()
}

/** Whether a handshake asks for a WebSocket version other than 13. */
export function asksForOtherWebSocketVersion({ headers }: ClientRequest): boolean {
  return (headers['sec-websocket-version'] ?? '13') !== '13'
}

/**
 * Whether a request is a WebSocket handshake as RFC 6455 section 4.1 defines it, without a body. No other request may become a tunnel,
 * through which a client could reach the backend unseen.
 */
export function isWebSocketHandshake({ method, headers, httpVersion }: ClientRequest): boolean {
  return (
    method === 'GET' &&
    httpVersion === '1.1' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    webSocketKey.test(headers['sec-websocket-key'] ?? '') &&
    // Headers that `Connection` names are not passed on, and without the `Sec-WebSocket` ones the backend would see no handshake.
    !/sec-websocket-/i.test(headers.connection ?? '') &&
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0
  )
}

/** Whether a 101 accepts the protocol that the request has offered. */
export function acceptsUpgrade(request: ClientRequest, head: UpgradeAnswer): boolean {
  const offered = offeredProtocol(request)
  if (offered === 'websocket') return acceptsHandshake(request, head)
  return offered !== undefined && head.upgrade?.toLowerCase() === offered
}

type UpgradeAnswer = { readonly upgrade: string | undefined; readonly fields: readonly string[] }

/**
 * Whether a 101 answers this handshake (RFC 6455 section 4.1): the digest of its key shows that the backend has read it as a WebSocket
 * handshake. Otherwise, the bytes that follow might not be WebSocket frames.
 */
function acceptsHandshake({ headers }: ClientRequest, { upgrade, fields }: UpgradeAnswer): boolean {
  const accepted = hash('sha1', `${headers['sec-websocket-key'] ?? ''}${webSocketGuid}`, 'base64')
  const answers = linesOf(fields, 'sec-websocket-accept')
  return upgrade?.toLowerCase() === 'websocket' && answers.length === 1 && answers[0] === accepted
}
