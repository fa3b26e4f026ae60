import { STATUS_CODES } from '../../../shared/node-http.ts'
import { currentDate } from '../message/date.ts'

const statusLines: (string | undefined)[] = []

/** With the usual reason phrase: that of a backend is not passed on. */
function statusLine(status: number): string {
  return (statusLines[status] ??= `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`)
}

/** How the body of a response ends (RFC 9112 section 6.3). */
export type ResponseFraming = 'none' | 'length' | 'chunked' | 'until-close'

/** Facts about a response, known before its head is written. */
export type ResponseConditions = {
  /** It answers HEAD. */
  readonly toHead: boolean
  /** Its client understands chunks: HTTP/1.1 (RFC 9112 section 7.1). */
  readonly takesChunks: boolean
  /** Whether to keep the connection open after it, if possible. */
  readonly persistent: boolean
  /** Says for how long an idle connection is kept. */
  readonly keepAliveLine: string
}

export type WrittenHead = {
  readonly text: string
  readonly framing: ResponseFraming
  readonly persistent: boolean
}

const closes = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i

/**
 * The head of a final response: the fields, `Date` unless there is one, and the fields that frame the body and decide about the
 * connection, unless the fields do.
 *
 * @param fields name, value, name, value… with names in lower case
 */
export function writeHead(
  status: number,
  fields: readonly string[],
  { toHead, takesChunks, persistent, keepAliveLine }: ResponseConditions,
): WrittenHead {
  let text = statusLine(status)
  let hasDate = false
  let hasLength = false
  let connection: string | undefined
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    text += `${name}: ${value}\r\n`
    if (name === 'content-length') hasLength = true
    else if (name === 'date') hasDate = true
    else if (name === 'connection') connection = value
  }
  if (!hasDate) text += `Date: ${currentDate()}\r\n`
  const framing = framingOf(status, toHead, hasLength, takesChunks)
  const isKept =
    connection === undefined
      ? persistent && framing !== 'until-close' && (hasLength || takesChunks)
      : persistent && !closes.test(connection)
  if (connection === undefined) text += isKept ? keepAliveLine : 'Connection: close\r\n'
  text += framing === 'chunked' ? 'Transfer-Encoding: chunked\r\n\r\n' : '\r\n'
  return { text, framing, persistent: isKept }
}

function framingOf(
  status: number,
  toHead: boolean,
  hasLength: boolean,
  takesChunks: boolean,
): ResponseFraming {
  if (toHead || status === 204 || status === 304) return 'none'
  if (hasLength) return 'length'
  return takesChunks ? 'chunked' : 'until-close'
}

/** @param fields name, value, name, value… */
export function writeInterimHead(status: number, fields: readonly string[]): string {
  return `${statusLine(status)}${writeFields(fields)}\r\n`
}

/** Each line with its end. */
export function writeFields(fields: readonly string[]): string {
  let text = ''
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`
  return text
}
