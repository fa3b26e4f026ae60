import { offersWebSocket } from '../fields/websocket-handshake.ts'
import { connectionOptions, type RequestFieldClassifier } from '../fields/header-roles.ts'
import { HeaderList, headerListOf, headerName, type HeaderName } from '../message/header-list.ts'
import type { ClientRequest } from '../message/client-request.ts'
import { privateReference, type ReferenceNames } from './private-references.ts'

/** Facts that the gateway itself knows about a request and sends to the backend. */
export type Provenance = {
  /** The peer's address, which is appended to `X-Forwarded-For` or replaces it. */
  readonly peerAddress: string
  /** The peer is a trusted proxy: its headers about the hops before it are kept. */
  readonly peerTrusted: boolean
  /** The client's address, for `X-Real-IP`. */
  readonly clientAddress: string
  /** A trusted proxy has named that address. */
  readonly clientNamed: boolean
  readonly scheme: 'http' | 'https'
  readonly requestId: string
  /** `Host` as forwarded. */
  readonly host: string
  /** `Host` for the backend, if it differs. */
  readonly upstreamHost?: string | undefined
  /** The prefix removed from the path, for `X-Forwarded-Prefix`. */
  readonly strippedPrefix?: string | undefined
  /** Host and path as the client and as the backend name them; undefined if they are the same. */
  readonly references?: ReferenceNames | undefined
  /** The HTTP version of the request, for `Via`: `1.1`, `1.0`, `2.0`. */
  readonly protocolVersion: string
  /** `Via` is removed, and not added. */
  readonly withoutVia?: boolean
  /** Headers that the operator has set. */
  readonly setHeaders?: HeaderList
  /** `Max-Forwards` to send, for methods that have it (RFC 9110 section 7.6.2). */
  readonly maxForwards: number | undefined
  /** The cost is read from the response's body, so the client may not ask for a compressed or partial response. */
  readonly bodyIsRead?: boolean
  /** `Range` of bytes is removed, as servers must ignore it for this method (RFC 9110 section 14.2), but not all do. */
  readonly withoutByteRange?: boolean
  /** The headers of the trace: name, value, name, value…; undefined without tracing. */
  readonly traceHeaders?: readonly string[] | undefined
  /** Removes cookies that the backend must not get; undefined if it gets all of them. */
  readonly withoutCookies?: ((header: string) => string) | undefined
}

/** Names of headers that the gateway writes itself. */
const names = {
  acceptEncoding: headerName('accept-encoding'),
  cookie: headerName('cookie'),
  host: headerName('host'),
  via: headerName('via'),
  xForwardedFor: headerName('x-forwarded-for'),
  xForwardedHost: headerName('x-forwarded-host'),
  xForwardedPrefix: headerName('x-forwarded-prefix'),
  xForwardedProto: headerName('x-forwarded-proto'),
  xRealIp: headerName('x-real-ip'),
  xRequestId: headerName('x-request-id'),
}

/**
 * The request's headers for the backend, `host` first. Hop-by-hop headers and those named by `Connection` are removed (RFC 9110 section
 * 7.6.1). `Connection` cannot remove headers that the gateway sets, that a trusted proxy has set about the client, or that the decision
 * used. Otherwise, a client could be counted by a value that the backend never sees. The caller adds the headers that frame the body.
 *
 * @param rawFields name, value, name, value… as received, with names in lower case; HTTP/2 pseudo-fields are skipped
 */
export function upstreamHeaders(
  classify: RequestFieldClassifier,
  rawFields: readonly string[],
  from: Provenance,
): HeaderList {
  const fields = new HeaderList()
  fields.add(names.host, from.upstreamHost ?? from.host)
  const received = passOn(fields, classify, rawFields, from)
  for (const { field, value } of received.decisive?.values() ?? []) fields.add(field, value)
  const { strippedPrefix, withoutCookies } = from
  if (strippedPrefix !== undefined)
    fields.add(names.xForwardedPrefix, received.outerPrefix.replace(/(?<!\/)\/+$/, '') + strippedPrefix)
  const cookie = received.cookie !== '' && withoutCookies ? withoutCookies(received.cookie) : received.cookie
  if (cookie !== '') fields.add(names.cookie, cookie)
  // Without the header a backend may choose any coding (RFC 9110 section 12.5.3).
  if (from.bodyIsRead) fields.add(names.acceptEncoding, 'identity')
  const trusted = from.peerTrusted ? received : nothingReceived
  fields.add(names.xForwardedFor, trusted.forwardedFor + from.peerAddress)
  fields.add(names.xForwardedHost, trusted.forwardedHost || from.host)
  fields.add(names.xForwardedProto, trusted.forwardedProto || from.scheme)
  fields.add(names.xRealIp, from.clientAddress)
  fields.add(names.xRequestId, from.requestId)
  if (!from.withoutVia) fields.add(names.via, `${received.via}${from.protocolVersion} sluice`)
  if (from.setHeaders) fields.addAll(from.setHeaders)
  if (from.traceHeaders) fields.addAll(headerListOf(from.traceHeaders))
  return fields
}

/**
 * The received values of headers that the gateway writes itself. There is one value for each, no matter how many lines the client has sent.
 */
type Received = {
  /** The entries, each followed by `, `. */
  forwardedFor: string
  forwardedHost: string
  forwardedProto: string
  /** `X-Forwarded-Prefix` of a trusted proxy, if a prefix is removed here too. */
  outerPrefix: string
  /** The entries, each followed by `, `. */
  via: string
  cookie: string
  decisive: Map<string, Decisive> | undefined
}

type Decisive = { readonly field: HeaderName; value: string }

function noHeaders(): Received {
  return {
    forwardedFor: '',
    forwardedHost: '',
    forwardedProto: '',
    outerPrefix: '',
    via: '',
    cookie: '',
    decisive: undefined,
  }
}

const nothingReceived: Readonly<Received> = noHeaders()

/** Adds the headers that are passed on as they are, and returns those that the gateway writes itself. */
function passOn(
  fields: HeaderList,
  classify: RequestFieldClassifier,
  rawFields: readonly string[],
  from: Provenance,
): Received {
  const received = noHeaders()
  const named = optionsNamedIn(rawFields)
  for (let i = 0; i < rawFields.length; i += 2) {
    const field = classify(rawFields[i] ?? '')
    if (!field) continue
    const value = rawFields[i + 1] ?? ''
    switch (field.role) {
      case 'end-to-end':
        if (from.bodyIsRead && changesBody.has(field.name)) break
        if (from.withoutByteRange && field.name === 'range' && ofBytes.test(value)) break
        if (field.decides || !named?.has(field.name)) fields.add(field, value)
        break
      case 'reference':
        if (!named?.has(field.name)) fields.add(field, referenceFor(from, field, value))
        break
      case 'decisive':
        addDecisive(received, field, value)
        break
      case 'cookie':
        // HTTP/2 may split it into several fields (RFC 9113 section 8.2.3).
        if (field.decides || !named?.has(field.name))
          received.cookie += received.cookie === '' ? value : `; ${value}`
        break
      case 'max-forwards':
        fields.add(field, String(from.maxForwards ?? value))
        break
      case 'via':
        if (value !== '') received.via += `${value}, `
        break
      case 'trusted-proxy':
        if (!from.peerTrusted) break
        if (from.strippedPrefix !== undefined && field.name === 'x-forwarded-prefix')
          received.outerPrefix = value
        else fields.add(field, value)
        break
      case 'client-address':
        // A header that the gateway did not believe could name another client to the backend than the one that was counted.
        if (from.clientNamed) fields.add(field, value)
        break
      case 'x-forwarded-for':
        if (value !== '') received.forwardedFor += `${value}, `
        break
      case 'x-forwarded-host':
        received.forwardedHost = value
        break
      case 'x-forwarded-proto':
        received.forwardedProto = value
        break
      default:
    }
  }
  return received
}

function referenceFor({ references }: Provenance, { name }: HeaderName, value: string): string {
  return references ? (privateReference(name, value, references) ?? value) : value
}

/** Joins several lines into one, as the decision did: some backends read only the first line, others the last. */
function addDecisive(received: Received, field: HeaderName, value: string): void {
  const decisive = (received.decisive ??= new Map<string, Decisive>())
  const before = decisive.get(field.name)
  if (before) before.value += `, ${value}`
  else decisive.set(field.name, { field, value })
}

/** Request headers that ask for a compressed or partial response. */
const changesBody = new Set(['accept-encoding', 'range'])

const ofBytes = /^bytes/i

/** Methods that usually have a body: backends answer 411 if its length is missing (RFC 9110 section 8.6). */
const expectsContent = new Set(['POST', 'PUT', 'PATCH'])

/** The `Content-Length` of a request without content: 0, or undefined to send no such header. */
export function lengthWithoutContent(request: ClientRequest, upgrades: boolean): 0 | undefined {
  if (upgrades && offersWebSocket(request)) return undefined
  const { method, headers } = request
  return headers['content-length'] !== undefined || expectsContent.has(method) ? 0 : undefined
}

/** The value of `Upgrade` for the backend: as the client wrote it, except that WebSocket is always in lower case. */
export function protocolToAskFor(request: ClientRequest): string {
  return offersWebSocket(request) ? 'websocket' : (request.headers.upgrade ?? '')
}

/** The header names in `Connection`; undefined without the header, and for `keep-alive` or `close` alone, which are removed in any case. */
function optionsNamedIn(rawFields: readonly string[]): ReadonlySet<string> | undefined {
  let value: string | undefined
  for (let i = 0; i < rawFields.length; i += 2) {
    if (rawFields[i] !== 'connection') continue
    value = value === undefined ? rawFields[i + 1] : `${value},${rawFields[i + 1] ?? ''}`
  }
  if (value === undefined || value === 'keep-alive' || value === 'close') return undefined
  return connectionOptions(value)
}
