import { readFieldName } from '../fields/field-names.ts'
import { illegalInValue } from '../message/token.ts'
import { http1Only } from '../fields/removed-headers.ts'
import { trimBlanks } from '../fields/trim-blanks.ts'

/** The pseudo-header fields and fields of a request (RFC 9113 section 8.3.1). */
export type RequestFields = {
  readonly method: string
  /** Empty for CONNECT. */
  readonly path: string
  /** Name, value, name, value… `:authority` stays among them. */
  readonly headers: readonly string[]
  /** The bytes of content that the request declares; undefined if it declares no length. */
  readonly contentLength: number | undefined
}

const illegalInPseudoValue = /[^\x21-\x7e\x80-\xff]/
const scheme = /^https?$/i
const digits = /^\d{1,16}$/

/**
 * Reads the fields of a request.
 *
 * @param list name, value, name, value…
 * @returns undefined for a malformed request (section 8.1.1)
 */
export function readRequestFields(list: readonly string[]): RequestFields | undefined {
  let method: string | undefined
  let path: string | undefined
  let sentScheme: string | undefined
  let authority: string | undefined
  let contentLength: string | undefined
  const headers: string[] = []
  let at = 0
  for (; at < list.length; at += 2) {
    const name = list[at] ?? ''
    const value = list[at + 1] ?? ''
    if (name.charCodeAt(0) !== 0x3a) break
    if (illegalInPseudoValue.test(value)) return undefined
    if (name === ':method' && method === undefined) method = value
    else if (name === ':path' && path === undefined) path = value
    else if (name === ':scheme' && sentScheme === undefined) sentScheme = value
    else if (name === ':authority' && authority === undefined) headers.push(name, (authority = value))
    else return undefined
  }
  for (; at < list.length; at += 2) {
    const name = readName(list[at] ?? '')
    const value = readValue(list[at + 1] ?? '')
    if (value === undefined || name === undefined) return undefined
    if (name === 'te' && value.toLowerCase() !== 'trailers') return undefined
    if (name === 'content-length') {
      if (contentLength !== undefined || !digits.test(value)) return undefined
      contentLength = value
    }
    headers.push(name, value)
  }
  const length = contentLength === undefined ? undefined : Number(contentLength)
  if (method === undefined || method === '') return undefined
  if (method === 'CONNECT') {
    if (path !== undefined || sentScheme !== undefined || authority === undefined) return undefined
    return { method, path: '', headers, contentLength: length }
  }
  if (path === undefined || sentScheme === undefined || !scheme.test(sentScheme)) return undefined
  if (!path.startsWith('/') && !(path === '*' && method === 'OPTIONS')) return undefined
  return { method, path, headers, contentLength: length }
}

/**
 * Reads the trailers of a request.
 *
 * @returns undefined if they are malformed
 */
export function readTrailerFields(list: readonly string[]): string[] | undefined {
  const trailers: string[] = []
  for (let i = 0; i < list.length; i += 2) {
    const name = readName(list[i] ?? '')
    const value = readValue(list[i + 1] ?? '')
    if (value === undefined || name === undefined) return undefined
    trailers.push(name, value)
  }
  return trailers
}

/** Returns undefined for a name that HTTP/2 forbids: one in upper case, or a connection-specific header. */
function readName(sent: string): string | undefined {
  const name = readFieldName(sent)?.name
  return name === sent && !http1Only.has(name) ? name : undefined
}

/** The value without the blanks around it, which HTTP/1 removes too. Undefined for an invalid value. */
function readValue(value: string): string | undefined {
  if (illegalInValue.test(value)) return undefined
  return trimBlanks(value)
}

/**
 * Stands in for fields that exceed the limit. Only those matter that say how to answer: a response to HEAD has no content, and a gRPC call,
 * which its content type tells, has its outcome in `grpc-status`. If the method is not among the fields, the request is answered as if it
 * were HEAD.
 *
 * @param list name, value, name, value… of the fields that were kept
 */
export function unreadFields(list: readonly string[]): RequestFields {
  const type = valueOf(list, 'content-type')
  return {
    method: valueOf(list, ':method') ?? 'HEAD',
    path: '/',
    headers: type === undefined ? [] : ['content-type', type],
    contentLength: undefined,
  }
}

/** The first value of a name in a list of name, value, name, value… */
function valueOf(list: readonly string[], name: string): string | undefined {
  const at = list.findIndex((item, i) => i % 2 === 0 && item === name)
  return at === -1 ? undefined : list[at + 1]
}
