import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import { isLoopback } from '../request/addresses/address-ranges.ts'
import { createAddressReader } from '../request/addresses/client-address.ts'
import { createTokenGuesses } from './token-guesses.ts'

/** Why a request is denied access to the operators' endpoints. */
export type AdminRefusal = {
  readonly error: ErrorReply
  readonly fields: Readonly<Record<string, string>>
}

/** Checks a request to an operators' endpoint. Resolves to undefined if it may pass, otherwise to the refusal. */
export type AdminAccess = (request: IncomingMessage) => Promise<AdminRefusal | undefined>

/**
 * With a token, a request that presents it (RFC 6750, section 2.1) may pass. Digests are compared in constant time, so that timing reveals
 * neither the token nor its length. A client that sends many wrong tokens is told to wait; the right token always passes.
 *
 * Without a token, the listener is on a loopback address, and any process on this machine may pass. Browsers are such processes and would
 * let any web page in: through a host name of the page's own that resolves to 127.0.0.1 (DNS rebinding), or by a plain cross-site request.
 * So `Host` must be a loopback name, `Origin`, if present, must be that same host, and `Sec-Fetch-Site`, in which the browser states where
 * a request comes from, must not name another origin. A request that a proxy on this machine has forwarded comes from elsewhere, and may
 * not pass: the gateway itself is such a proxy if its backend is this listener by mistake. With a token, there is no such danger: a page
 * does not know the token, and browsers do not add it by themselves.
 */
export function createAdminAccess(token: string | undefined): AdminAccess {
  if (token === undefined) {
    const refusal: AdminRefusal = { error: errors.adminLocalOnly, fields: {} }
    return (request) => Promise.resolve(isLocal(request) ? undefined : refusal)
  }
  const expected = digest(token)
  const recordWrong = createTokenGuesses(() => performance.now())
  const addresses = createAddressReader([])
  const unauthorized: AdminRefusal = {
    error: errors.adminUnauthorized,
    fields: { 'WWW-Authenticate': 'Bearer' },
  }
  return async (request) => {
    const given = /^Bearer +([^ ]+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    // A request without a token is not a guess.
    if (given === undefined) return unauthorized
    if (timingSafeEqual(digest(given), expected)) return undefined
    const waitS = await recordWrong(addresses.readPeer(request.socket.remoteAddress)?.client.prefix ?? '')
    return waitS > 0
      ? { error: errors.tooManyTokens, fields: { 'Retry-After': String(waitS) } }
      : unauthorized
  }
}

/** Headers that proxies add, this gateway among them. */
const ofProxies = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via'] as const

const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i

function isLocal(request: IncomingMessage): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = request.headers
  const ownOrigin = `http://${host.toLowerCase()}`
  return (
    // A disconnected peer has no address.
    isLoopback(request.socket.remoteAddress ?? '') &&
    LOOPBACK_HOST.test(host) &&
    ofProxies.every((name) => request.headers[name] === undefined) &&
    (origin === undefined || origin.toLowerCase() === ownOrigin) &&
    (site === undefined || site === 'same-origin' || site === 'none')
  )
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
