import { METHODS } from '../../shared/node-http.ts'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import { expectsOther, refuseFraming } from '../http/fields/framing.ts'
import type { ClientRequest } from '../http/message/messages.ts'
import { asksForOtherVersion, offersWebSocket } from '../http/fields/websocket-handshake.ts'
import type { Rejection } from '../telemetry/telemetry.ts'
import { readHost } from './host.ts'
import { readTarget, type Target } from './target/target.ts'

/** The methods that the HTTP/1 parser knows. Over HTTP/2 a method is any text. */
export const knownMethods = new Set(METHODS)

export type HeadOptions = {
  /** Bytes that a request's target may have. */
  readonly maxTargetBytes: number
  /** Maximum number of headers of a request. */
  readonly maxHeaderCount: number
  /** `Host` for an HTTP/1.0 request without one. */
  readonly upstreamHost: string
}

/** What a request is for, as rules are matched with it and the backend is asked. */
export type RequestHead = { readonly method: string; readonly target: Target; readonly host: string }

/** Why a request is rejected. */
export type RejectedHead = {
  readonly reason: Rejection
  readonly reply: ErrorReply
  /** For the log: without anything of the request. */
  readonly why: string
  /** The path as forwarded, as far as it could be told. */
  readonly path: string
}

/**
 * Reads a request head. Rejects requests that are ambiguous, too large, or expect something unsupported. `docs/http.md`
 * lists each decision with its source.
 *
 * @param upgrades the request is a WebSocket handshake that is taken up. Whatever else offers a WebSocket is rejected
 */
export function readRequestHead(
  request: ClientRequest,
  options: HeadOptions,
  upgrades: boolean,
): RequestHead | RejectedHead {
  const { method, url, rawHeaders } = request
  const { maxTargetBytes, maxHeaderCount, upstreamHost } = options
  const faulty = refuseFraming(request)
  if (faulty) return reject('framing', faulty.reply, faulty.why)
  if (!knownMethods.has(method)) return reject('other', errors.badRequest, 'unknown method')
  if (url.length > maxTargetBytes)
    return reject('target', errors.targetTooLong, 'the target is too long (MAX_TARGET_SIZE)')
  if (rawHeaders.length > 2 * maxHeaderCount && countFields(rawHeaders) > maxHeaderCount)
    return reject('headers-too-large', errors.fieldsTooLarge, 'too many headers (MAX_HEADER_COUNT)')
  const target = readTarget(method, url, request)
  if (typeof target === 'string') return reject('target', errors.badRequest, target)
  const host = readHost(request, target.authority, upstreamHost)
  if (host === undefined)
    return reject('host', errors.badRequest, 'the Host header is missing, repeated or invalid', target.path)
  if (expectsOther(request))
    return reject('other', errors.expectationFailed, 'unsupported Expect header', target.path)
  if (upgrades || !offersWebSocket(request)) return { method, target, host }
  if (asksForOtherVersion(request))
    return reject('framing', errors.upgradeRequired, 'the WebSocket version is not 13', target.path)
  return reject('framing', errors.badRequest, 'the WebSocket handshake is malformed', target.path)
}

export function reject(reason: Rejection, reply: ErrorReply, why: string, path = ''): RejectedHead {
  return { reason, reply, why, path }
}

/** Does not count HTTP/2's pseudo-fields, and counts cookies that it carries in pieces as one field (RFC 9113 section 8.2.3). */
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
