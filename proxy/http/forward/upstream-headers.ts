import { offersWebSocket } from '../fields/websocket-handshake.ts'
import { connectionOptions, type RequestFieldClassifier } from '../fields/header-roles.ts'
import type { ClientRequest } from '../message/messages.ts'
import { privateReference, type ReferenceNames } from './private-references.ts'

/** Facts that the gateway itself knows about a request and sends to the backend. */
export type Provenance = {
  /** The peer's address, which is appended to `X-Forwarded-For` or replaces it. */
  readonly peerAddress: string
  /** The peer is a trusted proxy: what it says of the hops before it is kept. */
  readonly peerTrusted: boolean
  /** The client's address, for `X-Real-IP`. */
  readonly clientAddress: string
  /** That address is the one that a trusted proxy has named. */
  readonly clientNamed: boolean
  readonly scheme: 'http' | 'https'
  readonly requestId: string
  /** `Host` as forwarded. */
  readonly host: string
  /** `Host` for the backend, where it is another. */
  readonly upstreamHost?: string | undefined
  /** The prefix removed from the path, for `X-Forwarded-Prefix`. */
  readonly strippedPrefix?: string | undefined
  /** How the client names what the backend has under another host or path; undefined where both have the same names. */
  readonly references?: ReferenceNames | undefined
  /** Of the version the request came with, for `Via`: `1.1`, `1.0`, `2.0`. */
  readonly protocolVersion: string
  /** `Via` is taken off, and none is added. */
  readonly withoutVia?: boolean
  /** Lines of headers that the operator has set, each ending in CRLF. */
  readonly headerLines?: string
  /** `Max-Forwards` to send, for methods that have it (RFC 9110 section 7.6.2). */
  readonly maxForwards: number | undefined
  /** The cost is read from the response's body, so the client may not ask for a compressed or partial one. */
  readonly bodyIsRead?: boolean
  /** Header lines of the trace, each ending in CRLF; empty without tracing. */
  readonly traceHeaders?: string | undefined
  /** Removes cookies that the backend does not get; undefined without any. */
  readonly withoutCookies?: ((header: string) => string) | undefined
}

/**
 * The request's fields for the backend, each line ending in CRLF. Fields of one hop and those named by
 * `Connection` are taken out (RFC 9110 section 7.6.1). `Connection` cannot take out what the gateway sets, what a trusted
 * proxy has said of the client, and what a decision rests on: a client could be counted by a value that the backend never
 * sees. Framing fields are the caller's to add.
 *
 * @param rawFields name, value, name, value… as received, with names in lower case; HTTP/2 pseudo-fields are passed over
 */
export function upstreamHeaders(
  classify: RequestFieldClassifier,
  rawFields: readonly string[],
  from: Provenance,
): string {
  let lines = `host: ${from.upstreamHost ?? from.host}\r\n`
  let forwardedFor = ''
  let forwardedHost = ''
  let forwardedProto = ''
  let outerPrefix = ''
  let via = ''
  let cookie = ''
  let decisive: Map<string, string> | undefined
  const named = optionsNamedIn(rawFields)

  for (let i = 0; i < rawFields.length; i += 2) {
    const field = classify(rawFields[i] ?? '')
    if (!field) continue
    const value = rawFields[i + 1] ?? ''
    switch (field.role) {
      case 'end-to-end':
        if (from.bodyIsRead && changesBody.has(field.name)) break
        if (field.decides || !named?.has(field.name)) lines += `${field.name}: ${value}\r\n`
        break
      case 'reference': {
        if (named?.has(field.name)) break
        const { references } = from
        lines += `${field.name}: ${references ? (privateReference(field.name, value, references) ?? value) : value}\r\n`
        break
      }
      case 'decisive': {
        // Of several lines one backend takes the first and another the last; the client's key is made of all of them.
        const before = decisive?.get(field.name)
        decisive ??= new Map()
        decisive.set(field.name, before === undefined ? value : `${before}, ${value}`)
        break
      }
      case 'cookie':
        // HTTP/2 may carry it in pieces (RFC 9113 section 8.2.3).
        if (field.decides || !named?.has(field.name)) cookie += cookie === '' ? value : `; ${value}`
        break
      case 'max-forwards':
        lines += `${field.name}: ${from.maxForwards ?? value}\r\n`
        break
      case 'via':
        if (value !== '') via += `${value}, `
        break
      case 'trusted-proxy':
        if (!from.peerTrusted) break
        if (from.strippedPrefix !== undefined && field.name === 'x-forwarded-prefix') outerPrefix = value
        else lines += `${field.name}: ${value}\r\n`
        break
      case 'client-address':
        // A header that the gateway did not trust would name another client to the backend than the one that was counted.
        if (from.clientNamed) lines += `${field.name}: ${value}\r\n`
        break
      case 'x-forwarded-for':
        if (value !== '') forwardedFor += `${value}, `
        break
      case 'x-forwarded-host':
        forwardedHost = value
        break
      case 'x-forwarded-proto':
        forwardedProto = value
        break
      default:
    }
  }

  if (!from.peerTrusted) forwardedFor = forwardedHost = forwardedProto = ''
  for (const [name, value] of decisive ?? []) lines += `${name}: ${value}\r\n`
  if (from.strippedPrefix !== undefined)
    lines += `x-forwarded-prefix: ${outerPrefix.replace(/\/+$/, '')}${from.strippedPrefix}\r\n`
  if (cookie !== '' && from.withoutCookies) cookie = from.withoutCookies(cookie)
  if (cookie !== '') lines += `cookie: ${cookie}\r\n`
  // Without the header a backend may choose any coding (RFC 9110 section 12.5.3).
  if (from.bodyIsRead) lines += 'accept-encoding: identity\r\n'
  return (
    // The text between two values is one string: each string costs when the head is put together.
    `${lines}x-forwarded-for: ${forwardedFor}${from.peerAddress}\r\nx-forwarded-host: ${forwardedHost || from.host}\r\n` +
    `x-forwarded-proto: ${forwardedProto || from.scheme}\r\nx-real-ip: ${from.clientAddress}\r\n` +
    `x-request-id: ${from.requestId}\r\n${from.withoutVia ? '' : `via: ${via}${from.protocolVersion} sluice\r\n`}` +
    (from.headerLines ?? '') +
    (from.traceHeaders ?? '')
  )
}

/** Request headers that ask for a compressed or partial response. */
const changesBody = new Set(['accept-encoding', 'range'])

/** The end of the head of a request without a body, including the empty line. */
export function endOfHead(request: ClientRequest, upgrades: boolean): string {
  if (upgrades && offersWebSocket(request)) return '\r\n'
  return saysNoContent(request) ? 'content-length: 0\r\n\r\n' : '\r\n'
}

/** Methods that usually have a body: backends answer 411 if its length is missing (RFC 9110 section 8.6). */
const expectsContent = new Set(['POST', 'PUT', 'PATCH'])

/** The header lines of an upgrade that is passed on, with the name of the protocol as the client has written it. */
export function upgradeLines(request: ClientRequest): string {
  const protocol = offersWebSocket(request) ? 'websocket' : (request.headers.upgrade ?? '')
  return `connection: upgrade\r\nupgrade: ${protocol}\r\n`
}

/** A request without content is to say so. */
export function saysNoContent({ method, headers }: ClientRequest): boolean {
  return headers['content-length'] !== undefined || expectsContent.has(method)
}

/** The header names in `Connection`; undefined for `keep-alive` and `close` alone, which are removed in any case. */
function optionsNamedIn(rawFields: readonly string[]): ReadonlySet<string> | undefined {
  let value: string | undefined
  for (let i = 0; i < rawFields.length; i += 2) {
    if (rawFields[i] !== 'connection') continue
    value = value === undefined ? rawFields[i + 1] : `${value},${rawFields[i + 1] ?? ''}`
  }
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined
  return connectionOptions(value)
}
