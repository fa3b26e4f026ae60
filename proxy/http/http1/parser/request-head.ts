import { METHODS } from '../../../../shared/node-http.ts'
import { connectionOptions } from '../../fields/header-roles.ts'
import type { FieldName } from '../../fields/field-names.ts'
import { readFieldLine } from './field-line.ts'
import { HeadSize, type HeadLimits } from './head-size.ts'
import { RequestSyntaxError } from './syntax-error.ts'

/**
 * How a request's body ends (RFC 9112 section 6.3). `unknown`: it cannot be determined, and nothing after the head can be read.
 * Such a request is still handed over, because the handler rejects it with a more precise reason.
 */
export type RequestFraming = 'none' | 'length' | 'chunked' | 'unknown'

/** The head of a request, as the parser has read it; `RequestHead` of `proxy/request/` is what the rules see. */
export type ParsedHead = {
  readonly method: string
  /** The target as received. */
  readonly url: string
  /** `1.1` or `1.0`; any other version that the request line names cannot be served. */
  readonly version: string
  /** Name, value, name, value… in the order in which they came, with names in lower case. */
  readonly fields: readonly string[]
  readonly framing: RequestFraming
  /** Bytes of the body if the framing is `length`: more than 0. */
  readonly contentBytes: number
  /** Whether the client allows another request on the connection (RFC 9112 section 9.3). */
  readonly persistent: boolean
}

const methods = new Map(METHODS.map((method) => [method, method]))
const MAX_METHOD_LENGTH = Math.max(...METHODS.map(({ length }) => length))
const otherVersion = /^HTTP\/([0-9]\.[0-9])$/
const digits = /^[0-9]+$/
const HORIZONTAL_TAB = 0x09
const SPACE = 0x20
const SLASH = 0x2f
const ASTERISK = 0x2a
const notInTarget = /[^\x21-\x7e]/
/** RFC 9112 section 3.2: the absolute form, and the authority form of CONNECT. The handler decides which targets it accepts. */
const absolute =
  /^[A-Za-z]+:\/\/(?:[A-Za-z0-9\-_.!~*'()%;:&=+$,[\]]*@)?[A-Za-z0-9\-_.!~*'()%;:&=+$,[\]]*(?:[/?]|$)/
const authority = /^(?:[A-Za-z0-9\-_.!~*'()%;:&=+$,[\]]*@)?[A-Za-z0-9\-_.!~*'()%;:&=+$,[\]]*(?:[/?]|$)/
/** The largest 64-bit number: many parsers cannot read a larger length. */
const greatestLength = 18_446_744_073_709_551_615n
const leadingZeros = /^0+(?=[0-9])/
const MAX_LENGTH_DIGITS = 20

/** Reads the lines of heads, one head after another. The caller has checked their characters. */
export class HeadReader {
  readonly #size: HeadSize
  #method = ''
  #url = ''
  #version = ''
  #fields: string[] = []
  readonly #names: FieldName[] = []
  #length: string | undefined
  #coding: string | undefined
  #connection: string | undefined

  constructor(limits: HeadLimits) {
    this.#size = new HeadSize(limits)
  }

  /** The request line has been read. */
  get hasBegun(): boolean {
    return this.#method !== ''
  }

  /** Discards the part of a head read so far. Slices of it would keep its whole text in memory while the connection is idle. */
  clear(): void {
    this.#method = this.#url = this.#version = ''
    this.#size.clear()
    this.#fields = []
    this.#length = this.#coding = this.#connection = undefined
  }

  /** @throws {RequestSyntaxError} if an unfinished line of this many bytes makes the head too large */
  checkUnfinished(bytes: number): void {
    this.#size.checkUnfinished(bytes)
  }

  /** @throws {RequestSyntaxError} */
  readRequestLine(text: string, start: number, end: number): void {
    const line = start === 0 && end === text.length ? text : text.slice(start, end)
    const targetStart = line.indexOf(' ') + 1
    const written = line.slice(0, Math.max(0, targetStart - 1))
    // A comparison is cheaper: V8 interns a new string before it looks it up in a Map.
    const method = written === 'GET' ? 'GET' : methods.get(written)
    if (method === undefined) throw new RequestSyntaxError('unknown method, or no request line')
    const targetEnd = line.indexOf(' ', targetStart)
    const target = targetEnd === -1 ? line.slice(targetStart) : line.slice(targetStart, targetEnd)
    if (!isTarget(target, method)) throw new RequestSyntaxError('invalid request target')
    this.#version = targetEnd === -1 ? '0.9' : versionOf(line.slice(targetEnd + 1))
    this.#method = method
    this.#url = target
    this.#size.addLine(end - start)
  }

  /** @throws {RequestSyntaxError} */
  readField(text: string, start: number, end: number): void {
    this.#size.addField(end - start)
    const framing = readFieldLine(text, start, end, this.#fields, this.#names)
    if (framing === undefined) return
    const value = this.#fields[this.#fields.length - 1] ?? ''
    if (framing === 'connection') this.#connection = joined(this.#connection, value)
    else if (framing === 'transfer-encoding') {
      // Other parsers read the tab as a part of the coding, and find another end of the body.
      if (value !== '' && endsInTab(text, end)) throw new RequestSyntaxError('tab after a transfer coding')
      this.#coding = joined(this.#coding, value)
    } else {
      if (this.#length !== undefined) throw new RequestSyntaxError('more than one Content-Length')
      this.#length = value
    }
  }

  /**
   * Returns the head. Call when its last line has been read.
   *
   * @throws {RequestSyntaxError} if it frames its body in two ways, or in an invalid one
   */
  finish(): ParsedHead {
    const contentBytes = this.#length === undefined ? 0 : contentBytesOf(this.#length)
    const isHttp11 = this.#version === '1.1'
    const options = this.#connection === undefined ? undefined : connectionOptions(this.#connection)
    const head: ParsedHead = {
      method: this.#method,
      url: this.#url,
      version: this.#version,
      fields: this.#fields,
      framing: this.#framing(contentBytes),
      contentBytes,
      persistent: !options?.has('close') && (isHttp11 || (options?.has('keep-alive') ?? false)),
    }
    this.clear()
    return head
  }

  #framing(contentBytes: number): RequestFraming {
    if (this.#coding !== undefined) {
      if (this.#length !== undefined)
        throw new RequestSyntaxError('both Content-Length and Transfer-Encoding')
      const codings = this.#coding.toLowerCase().split(',')
      // RFC 9112 section 6.1: `chunked` is applied once, and last.
      if (codings.slice(0, -1).some((coding) => coding.trim() === 'chunked'))
        throw new RequestSyntaxError('chunked is not the last transfer coding')
      const isKnown = this.#version === '1.1' && this.#method !== 'CONNECT' && codings.length === 1
      return isKnown && codings[0] === 'chunked' ? 'chunked' : 'unknown'
    }
    if (this.#method === 'CONNECT' || (this.#version !== '1.1' && this.#version !== '1.0')) return 'unknown'
    if (contentBytes > Number.MAX_SAFE_INTEGER) return 'unknown'
    return contentBytes > 0 ? 'length' : 'none'
  }
}

/**
 * Whether a request line can begin with these characters.
 *
 * @param text the first characters received, up to 16
 */
export function beginsLikeRequest(text: string): boolean {
  const methodEnd = text.indexOf(' ')
  if (methodEnd !== -1) return methods.has(text.slice(0, methodEnd))
  return text.length <= MAX_METHOD_LENGTH && METHODS.some((method) => method.startsWith(text))
}

/** Whether there is a tab among the blanks before `end`. */
function endsInTab(text: string, end: number): boolean {
  let at = end - 1
  while (text.charCodeAt(at) === SPACE) at--
  return text.charCodeAt(at) === HORIZONTAL_TAB
}

function isTarget(text: string, method: string): boolean {
  if (text === '' || notInTarget.test(text)) return false
  if (method === 'CONNECT') return authority.test(text)
  const first = text.charCodeAt(0)
  return first === SLASH || first === ASTERISK || absolute.test(text)
}

function versionOf(text: string): string {
  if (text === 'HTTP/1.1') return '1.1'
  if (text === 'HTTP/1.0') return '1.0'
  const named = otherVersion.exec(text)?.[1]
  if (named === undefined) throw new RequestSyntaxError('invalid HTTP version')
  return named
}

function contentBytesOf(text: string): number {
  if (!digits.test(text)) throw new RequestSyntaxError('invalid Content-Length')
  if (text.length <= 15) return Number(text)
  // Only a few digits are converted, because the time for a conversion grows with the square of their number.
  const significant = text.replace(leadingZeros, '')
  if (significant.length > MAX_LENGTH_DIGITS || BigInt(significant) > greatestLength)
    throw new RequestSyntaxError('Content-Length overflow')
  return Number(significant)
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`
}
