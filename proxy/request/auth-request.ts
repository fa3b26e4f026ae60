import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import { readAuthority } from './authority.ts'
import {
  findFramingFault,
  findHeadFault,
  readHost,
  reject,
  type HeadOptions,
  type RejectedHead,
  type RequestHead,
} from './request-head.ts'
import { readTarget } from './target/target.ts'

/** How a proxy describes the original request in an auth request. The path of the auth request determines the form. */
export type AuthRequestForm = 'forward-auth' | 'auth-request' | 'ext-authz'

const extAuthzPrefix = '/ext-authz'

/** Maximum number of headers that the proxy adds to those of the original request. */
export const ADDED_FIELDS = 16

/** A mistake in the configuration of the proxy that asks. `reason` names the header, for the log; the reply does not. */
type UnusableAuthRequest = { readonly reply: ErrorReply; readonly reason: string }

type Original = { readonly method: string; readonly target: string; readonly host: string }

/** @returns undefined for a path that is not one of these forms */
export function formOf({ url }: ClientRequest): AuthRequestForm | undefined {
  if (url.startsWith(`${extAuthzPrefix}/`)) return 'ext-authz'
  const question = url.indexOf('?')
  const path = question === -1 ? url : url.slice(0, question)
  if (path === '/forward-auth') return 'forward-auth'
  return path === '/auth-request' ? 'auth-request' : undefined
}

/**
 * Reads the head of the original request from an auth request: one method, target and host, which are checked as if the request had arrived
 * here. Nothing is guessed: a missing, repeated or malformed header is an error in the proxy's configuration.
 *
 * - `forward-auth`: `X-Forwarded-Method`, `X-Forwarded-Uri`, `X-Forwarded-Host`. Traefik, Caddy
 * - `auth-request`: `X-Original-Method`, `X-Original-URI`, `Host`. nginx
 * - `ext-authz`: the method, the rest of the path after `/ext-authz`, `Host`. Envoy
 */
export function readAuthRequest(
  form: AuthRequestForm,
  request: ClientRequest,
  options: HeadOptions,
): RequestHead | RejectedHead | UnusableAuthRequest {
  const fault = findFramingFault(request)
  if (fault) return fault
  const original = readOriginal(form, request, options.upstreamHost)
  if ('reply' in original) return original
  const { method, target: written, host } = original
  const maxHeaderCount = options.maxHeaderCount + ADDED_FIELDS
  const headFault = findHeadFault(method, written, request.rawHeaders, { ...options, maxHeaderCount })
  if (headFault) return headFault
  const target = readTarget(method, written, { headers: request.headers, isForwardedAsSent: true })
  if (typeof target === 'string') return reject('target', errors.badRequest, target)
  // Proxies write the path and query here, regardless of the form that the client has used.
  if (target.authority !== undefined)
    return reject(
      'target',
      errors.badRequest,
      'the target of the original request is not a path',
      target.path,
    )
  return { method, target, host }
}

/** @param fallback the host for an HTTP/1.0 request without one, which nginx sends with `proxy_http_version 1.0` for such a request */
function readOriginal(
  form: AuthRequestForm,
  request: ClientRequest,
  fallback: string,
): Original | UnusableAuthRequest {
  const { method, url } = request
  if (form === 'forward-auth') {
    const forwarded = readAuthority(onlyValue(request, 'x-forwarded-host') ?? '')
    return allOf(
      onlyValue(request, 'x-forwarded-method'),
      onlyValue(request, 'x-forwarded-uri'),
      forwarded,
      form,
    )
  }
  const host = readHost(request, undefined, fallback)
  if (form === 'ext-authz') return allOf(method, url.slice(extAuthzPrefix.length), host, form)
  return allOf(onlyValue(request, 'x-original-method'), onlyValue(request, 'x-original-uri'), host, form)
}

function allOf(
  method: string | undefined,
  target: string | undefined,
  host: string | undefined,
  form: AuthRequestForm,
): Original | UnusableAuthRequest {
  if (!method) return unusable(form === 'forward-auth' ? 'X-Forwarded-Method' : 'X-Original-Method')
  if (!target) return unusable(form === 'forward-auth' ? 'X-Forwarded-Uri' : 'X-Original-URI')
  if (!host) return unusable(form === 'forward-auth' ? 'X-Forwarded-Host' : 'Host')
  return { method, target, host }
}

function unusable(header: string): UnusableAuthRequest {
  return {
    reply: errors.authRequestUnreadable,
    reason: `${header} is missing, repeated or invalid`,
  }
}

/** Returns the value of a header that occurs exactly once; undefined otherwise. */
function onlyValue({ rawHeaders }: ClientRequest, name: string): string | undefined {
  let found: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i] !== name) continue
    if (found !== undefined) return undefined
    found = rawHeaders[i + 1]
  }
  return found
}
