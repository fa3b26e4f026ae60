import { classifyResponseField } from './header-roles.ts'
import { neverTrailerPrefixes, neverTrailers } from './removed-headers.ts'
import type { ClientRequest } from '../message/client-request.ts'
import { illegalInValue } from '../message/token.ts'

/** Whether a field may be a trailer that a proxy passes on. */
function mayBeTrailer(name: string): boolean {
  return !neverTrailers.has(name) && !neverTrailerPrefixes.some((prefix) => name.startsWith(prefix))
}

/** The trailers of a response that are passed on: name, value, name, value…; names in lower case. */
export function responseTrailers(fields: readonly string[]): string[] {
  const passed: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const field = classifyResponseField(fields[i] ?? '')
    const value = fields[i + 1] ?? ''
    if (field?.role === 'end-to-end' && mayBeTrailer(field.name) && !illegalInValue.test(value))
      passed.push(field.name, value)
  }
  return passed
}

const namesTrailers = /(?:^|,)[\t ]*trailers[\t ]*(?:;|,|$)/i

/** Whether the client sent `TE: trailers` (RFC 9110 section 10.1.4): it reads trailers, and does not drop them. */
export function acceptsTrailers({
  headers,
  httpVersion,
}: Pick<ClientRequest, 'headers' | 'httpVersion'>): boolean {
  return headers.te !== undefined && httpVersion !== '1.0' && namesTrailers.test(headers.te.toString())
}
