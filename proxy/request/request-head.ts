import { METHODS } from '../../shared/node-http.ts'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import { asksForOtherWebSocketVersion, offersWebSocket } from '../http/fields/websocket-handshake.ts'
import { ownCopy } from '../http/message/detach-buffer.ts'
import type { Rejection } from '../telemetry/telemetry.ts'
import { readAuthority, rememberHosts } from './authority.ts'
import { readTarget, type Target } from './target/target.ts'

/** The methods that the HTTP/1 parser knows. HTTP/2 clients can send any text as a method. */
export const knownMethods = new Set(METHODS)

const hosts = rememberHosts()

export type HeadOptions = HeadBounds & {
  /** The host for an HTTP/1.0 request without `Host`. */
  readonly upstreamHost: string
}

type HeadBounds = {
  /** Maximum bytes of a request's target. */
  readonly maxTargetBytes: number
  /** Maximum number of headers of a request. */
  readonly maxHeaderCount: number
}

/** The options of all requests. @param upstreamUrl the backend's, for the host of HTTP/1.0 requests without `Host` */
export function headOptionsOf({
  maxTargetBytes,
  maxHeaderCount,
  upstreamUrl,
}: HeadBounds & { readonly upstreamUrl: URL }): HeadOptions {
  return { maxTargetBytes, maxHeaderCount, upstreamHost: upstreamUrl.host }
}

/** The method, target and host of a request, as used by rules and forwarded to the backend. */
export type RequestHead = { readonly method: string; readonly target: Target; readonly host: string }

/** The rejection of a request before any rule applies. */
export type RejectedHead = {
  /** The kind of rejection, for metrics. */
  readonly rejection: Rejection
  readonly reply: ErrorReply
  /** The reason for the log, without any text of the request. */
  readonly reason: string
  /** The path as forwarded; empty if it could not be read. */
  readonly path: string
}

/**
 * Reads a request head. Rejects requests that are ambiguous, too large, or expect something unsupported. `docs/http.md`
 * lists each decision with its source.
 *
 * @param upgrades the request is a WebSocket handshake that the gateway accepts. Any other request that offers a WebSocket is rejected
 */
export function readRequestHead(
  request: ClientRequest,
  options: HeadOptions,
  upgrades: boolean,
): RequestHead | RejectedHead {
  const { method, url, rawHeaders } = request
  const fault = findFramingFault(request) ?? findHeadFault(method, url, rawHeaders, options)
  if (fault) return fault
  const target = readTarget(method, url, request)
  if (typeof target === 'string') return reject('target', errors.badRequest, target)
  const host = readHost(request, target.authority, options.upstreamHost)
  if (host === undefined)
    return reject('host', errors.badRequest, 'the Host header is missing, repeated or invalid', target.path)
  if (hasUnsupportedExpectation(request))
    return reject('other', errors.expectationFailed, 'unsupported Expect header', target.path)
  if (upgrades || request.headers.upgrade === undefined || !offersWebSocket(request))
    return { method, target, host }
  if (asksForOtherWebSocketVersion(request))
    return reject('framing', errors.upgradeRequired, 'the WebSocket version is not 13', target.path)
  return reject('framing', errors.badRequest, 'the WebSocket handshake is malformed', target.path)
}

/** Finds an unknown method, a target that is too long, and too many headers. @param target as sent */
export function findHeadFault(
  method: string,
  target: string,
  rawHeaders: readonly string[],
  { maxTargetBytes, maxHeaderCount }: HeadBounds,
): RejectedHead | undefined {
  if (!knownMethods.has(method)) return reject('other', errors.badRequest, 'unknown method')
  if (target.length > maxTargetBytes)
    return reject(
      'target',
      errors.targetTooLong,
      'the target is too long (more than half of MAX_HEADER_SIZE)',
    )
  if (rawHeaders.length > 2 * maxHeaderCount && countFields(rawHeaders) > maxHeaderCount)
    return reject('headers-too-large', errors.fieldsTooLarge, 'too many headers')
  return undefined
}

/**
 * @param reason for the log, without any text of the request
 * @param path the path as forwarded; empty if it could not be read
 */
export function reject(rejection: Rejection, reply: ErrorReply, reason: string, path = ''): RejectedHead {
  return { rejection, reply, reason, path }
}

/**
 * Counts header fields, except HTTP/2's pseudo-fields. Cookies that HTTP/2 splits into fields count as one (RFC 9113 section 8.2.3).
 *
 * @internal exported for tests
 */
export function countFields(rawFields: readonly string[]): number {
  let count = 0
  let hasCookie = false
  for (let i = 0; i < rawFields.length; i += 2) {
    const name = rawFields[i] ?? ''
    if (name.startsWith(':') || (name === 'cookie' && hasCookie)) continue
    count++
    hasCookie ||= name === 'cookie'
  }
  return count
}

/**
 * Returns the host that a request names, as it is forwarded; undefined if the request must be rejected (RFC 9112 section 3.2): one without
 * `Host`, except in HTTP/1.0; one with several, except if HTTP/2 names the same host in both `:authority` and `Host`; or one with an
 * invalid host. The host of an absolute-form target replaces that of `Host` (section 3.2.2).
 *
 * @param authority the authority of an absolute-form target
 * @param fallback the host for an HTTP/1.0 request, which need not name one
 */
export function readHost(
  request: ClientRequest,
  authority: string | undefined,
  fallback: string,
): string | undefined {
  const { rawHeaders } = request
  let sent: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (!isHostField(name)) continue
    const value = rawHeaders[i + 1]
    if (sent !== undefined && (request.httpVersionMajor === 1 || !isSameAuthority(sent, value ?? '')))
      return undefined
    sent ??= value
  }
  if (sent === undefined) {
    return request.httpVersion === '1.0' ? (authority ?? fallback) : undefined
  }
  const host = readHostValue(sent)
  return host === undefined ? undefined : (authority ?? host)
}

function isHostField(name: string): boolean {
  return name === 'host' || name === ':authority'
}

/** Whether `:authority` and `Host` name the same host (RFC 9113 section 8.3.1), ignoring letter case and the default port. */
function isSameAuthority(one: string, other: string): boolean {
  return one === other || withoutUsualPort(one.toLowerCase()) === withoutUsualPort(other.toLowerCase())
}

/** Removes the default port of `http` or `https`. A request without TLS may be for either, because a proxy may have terminated TLS. */
function withoutUsualPort(authority: string): string {
  return authority.replace(/:(?:80|443)?$/, '')
}

/** The last host that was forwarded as sent. Most requests name the same host as the one before. */
let lastHost: string | undefined

function readHostValue(value: string): string | undefined {
  if (value === lastHost) return lastHost
  const known = hosts.find(value)
  if (known === value) lastHost = known
  if (known !== undefined) return known
  const copy = ownCopy(value)
  const host = readAuthority(copy)
  if (host !== undefined) hosts.add(copy, host)
  return host
}

/**
 * Returns how the gateway itself answers a request: with an error, or `options` for a successful OPTIONS; undefined if the request must be
 * forwarded.
 *
 * - TRACE is never forwarded, because the response would contain the request's credentials and the headers that proxies have added (RFC
 *   9110 section 9.3.8).
 * - `OPTIONS *` asks about the server as a whole, which is the gateway for the client (section 9.3.7). It could not be forwarded to a
 *   backend with a path prefix either.
 * - `Max-Forwards: 0` means that OPTIONS must not be forwarded further (section 7.6.2).
 */
export function localReply(
  { method, headers }: Pick<ClientRequest, 'method' | 'headers'>,
  { path }: Target,
): RejectedHead | 'options' | undefined {
  if (method === 'TRACE') return reject('other', errors.methodNotAllowed, 'TRACE is not supported', path)
  if (method !== 'OPTIONS') return undefined
  const maxForwards = headers['max-forwards']?.toString()
  if (maxForwards !== undefined && !maxForwardsSyntax.test(maxForwards))
    return reject('other', errors.badRequest, 'Max-Forwards is not a number', path)
  return path === '*' || Number(maxForwards) === 0 ? 'options' : undefined
}

const maxForwardsSyntax = /^[0-9]{1,9}$/

/**
 * Finds out whether the body of a request cannot be delimited safely. After the rejection, the connection must be closed. The parser
 * already rejects repeated or malformed lengths, a length together with a coding, and a coding after `chunked`. This function also rejects:
 *
 * - Versions other than HTTP/1.0 and HTTP/1.1 (RFC 9110 section 15.6.6)
 * - A transfer coding in HTTP/1.0, or one that does not end in `chunked` (RFC 9112 sections 6.1 and 6.3)
 * - Another coding before `chunked`, which would have to be decoded before the content is framed again (section 6.1)
 * - A length above `Number.MAX_SAFE_INTEGER`
 *
 * @returns undefined for a request that can be forwarded
 */
export function findFramingFault({
  httpVersionMajor,
  httpVersion,
  headers,
}: ClientRequest): RejectedHead | undefined {
  // HTTP/2 has its own framing.
  if (httpVersionMajor > 1) return undefined
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return reject('framing', errors.versionNotSupported, 'the version is neither HTTP/1.0 nor HTTP/1.1')
  const coding = headers['transfer-encoding']?.toLowerCase()
  if (coding === undefined) {
    const length = headers['content-length']
    return length !== undefined && Number(length) > Number.MAX_SAFE_INTEGER
      ? reject('framing', errors.bodyTooLarge, 'the Content-Length is too large')
      : undefined
  }
  if (httpVersion === '1.0')
    return reject('framing', errors.badRequest, 'Transfer-Encoding in an HTTP/1.0 request')
  if (!endsInChunked.test(coding))
    return reject('framing', errors.badRequest, 'the Transfer-Encoding does not end in chunked')
  return coding === 'chunked'
    ? undefined
    : reject(
        'framing',
        errors.codingNotImplemented,
        'unsupported Transfer-Encoding (only chunked is supported)',
      )
}

const endsInChunked = /(?:^|,[\t ]*)chunked$/

/** Whether `Expect` has a value other than `100-continue`. In HTTP/1.0 the field is ignored (RFC 9110 section 10.1.1). */
export function hasUnsupportedExpectation({ headers, httpVersion }: ClientRequest): boolean {
  return (
    headers.expect !== undefined && httpVersion !== '1.0' && headers.expect.toLowerCase() !== '100-continue'
  )
}
