import type { RequestFieldClassifier } from './header-roles.ts'
import { classifyResponseField } from './header-roles.ts'
import type { ClientRequest } from '../message/messages.ts'

// RFC 9110 section 6.5.1: a field for framing, routing, authentication, cache control or content encoding has no effect
// in a trailer, or that of a header, which would have been checked.
const forbidden = new Set([
  ...[
    'accept-encoding',
    'age',
    'authentication-info',
    'authorization',
    'cache-control',
    'cookie',
    'date',
    'expect',
  ],
  ...[
    'expires',
    'forwarded',
    'host',
    'location',
    'max-forwards',
    'origin',
    'pragma',
    'proxy-authentication-info',
  ],
  ...['range', 'retry-after', 'set-cookie', 'te', 'trailer', 'vary', 'via', 'warning', 'www-authenticate'],
  ...['grpc-timeout', 'grpc-encoding', 'grpc-accept-encoding'],
])
const forbiddenPrefixes = [
  ...[
    'access-control-',
    'content-',
    'if-',
    'proxy-',
    'ratelimit',
    'sec-',
    'strict-transport-',
    'x-content-',
    'x-forwarded-',
  ],
  ...['x-http-method', 'x-method', 'x-frame-', 'x-real-ip', 'x-request-id', 'x-ratelimit'],
]

/** Whether a field may be a trailer that a proxy passes on. */
function mayBeTrailer(name: string): boolean {
  return !forbidden.has(name) && !forbiddenPrefixes.some((prefix) => name.startsWith(prefix))
}

/** The trailers of a response that are passed on: name, value, name, value…; names in lower case. */
export function responseTrailers(fields: readonly string[]): string[] {
  return passedOn(fields, classifyResponseField)
}

/**
 * The trailers of a request that are passed on. Fields that the gateway removes from headers, or reads there, are removed here.
 *
 * @param classify as for its headers
 */
export function requestTrailers(request: ClientRequest, classify: RequestFieldClassifier): string[] {
  return passedOn(request.rawTrailers, classify)
}

function passedOn(fields: readonly string[], classify: RequestFieldClassifier): string[] {
  const passed: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const field = classify(fields[i] ?? '')
    const value = fields[i + 1] ?? ''
    if (field?.role === 'end-to-end' && mayBeTrailer(field.name) && !illegal.test(value))
      passed.push(field.name, value)
  }
  return passed
}

const illegal = /[^\t\x20-\x7e\x80-\xff]/

const saysTrailers = /(?:^|,)[\t ]*trailers[\t ]*(?:;|,|$)/i

/** `TE: trailers` (RFC 9110 section 10.1.4): the client reads trailers, and does not drop them. */
export function acceptsTrailers({ headers, httpVersion }: ClientRequest): boolean {
  return headers.te !== undefined && httpVersion !== '1.0' && saysTrailers.test(headers.te.toString())
}
