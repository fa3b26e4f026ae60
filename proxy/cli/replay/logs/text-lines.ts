import { isIP } from 'node:net'
import { parseEntry } from '../../../request/addresses/address-header.ts'
import { readAuthority } from '../../../request/authority.ts'
import { splitForwarded } from './forwarded-peer.ts'
import { noHeaders, type Knowledge, type LoggedRequest, type ReadLine } from './logged-request.ts'

const common: Knowledge = { format: 'common', query: true, headers: new Set() }
const combined: Knowledge = { format: 'combined', query: true, headers: new Set(['referer', 'user-agent']) }
const withForwarded: Knowledge = {
  format: 'combined',
  query: true,
  headers: new Set(['referer', 'user-agent', 'x-forwarded-for']),
}
const traefik: Knowledge = { ...combined, format: 'traefik' }

/**
 * Reads a line of the Common Log Format, or of a format derived from it: combined (nginx's default), optionally with the virtual host
 * before it or `"$http_x_forwarded_for"` after it, as in nginx's example; or Traefik's format, which ends with the duration.
 *
 * `HOST IDENT USER [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326 "REFERER" "USER-AGENT"`
 */
export function readTextLine(line: string): ReadLine {
  // Servers escape a quote in the name of a user, but not a bracket.
  const closing = line.indexOf('] "')
  const opening = line.lastIndexOf(' [', closing)
  if (opening === -1 || closing === -1) return { why: 'in no known format' }
  const timeMs = readTime(line.slice(opening + 2, closing))
  if (timeMs === undefined) return { why: 'the time cannot be read' }
  const requestEnd = endOfQuoted(line, closing + 3)
  if (requestEnd === -1) return { why: 'in no known format' }
  const request = unescaped(line.slice(closing + 3, requestEnd))
  const methodEnd = request.indexOf(' ')
  const targetEnd = request.lastIndexOf(' HTTP/')
  // The client connected and sent nothing, or bytes that are not a request.
  if (methodEnd === -1 || targetEnd <= methodEnd) return { why: 'it has no request' }
  const who = readWho(line.slice(0, opening))
  if ('why' in who) return who
  const status = readStatus(line, requestEnd + 2)
  const rest = status ? readRest(line, status.end) : nothingElse
  return {
    timeMs,
    ip: who.ip,
    host: who.host,
    method: request.slice(0, methodEnd),
    target: request.slice(methodEnd + 1, targetEnd),
    status: status?.code,
    ...rest,
    headers: { ...rest.headers, ...who.forwardedFor },
  }
}

/**
 * Reads `ADDRESS IDENT USER` or `HOST[:PORT] ADDRESS IDENT USER`. The client chooses the host, which may be an address too. In place of
 * the address, Traefik logs the whole `X-Forwarded-For` of a request that came from a trusted proxy.
 */
function readWho(
  text: string,
):
  | (Pick<LoggedRequest, 'ip' | 'host'> & { readonly forwardedFor: LoggedRequest['headers'] })
  | { readonly why: string } {
  // A comma is followed by a space or not, as whoever appended the next address has written it.
  const [first = '', second = ''] = text.replaceAll(', ', ',').split(' ', 2)
  const isHostFirst = isAddress(second)
  if (!isHostFirst && !isAddress(first)) return { why: 'it has no client address' }
  // Such as the time of a syslog header, or the pod in the output of `kubectl logs --prefix`.
  if (isHostFirst && readAuthority(first) === undefined)
    return { why: 'the text before an address is not a host' }
  const { peer, forwardedFor } = splitForwarded(isHostFirst ? second : first)
  return { ip: peer, host: isHostFirst ? first : undefined, forwardedFor }
}

/** Whether it is an address, or a list that ends with one. */
function isAddress(text: string): boolean {
  return isIP(splitForwarded(text).peer) > 0
}

/**
 * Reads the status, in quotes or not. Some formats have all fields in quotes.
 *
 * @returns undefined if another field is in its place: it is unknown what the fields after it are
 */
function readStatus(
  line: string,
  from: number,
): { readonly code: number | undefined; readonly end: number } | undefined {
  statusForm.lastIndex = from
  const [all, text] = statusForm.exec(line) ?? []
  if (all === undefined) return undefined
  const code = Number(text)
  return { code: code >= 100 ? code : undefined, end: from + all.length }
}

/** The status, or `-`, and the number of bytes if that is in quotes: the quoted fields after it are known by their order. */
const statusForm = /"?(\d{3}|-)"?(?![^ ])(?: +"\d+"(?![^ ]))?/y

type Rest = Pick<LoggedRequest, 'durationMs' | 'headers' | 'knows'>

const nothingElse: Rest = { durationMs: undefined, headers: noHeaders, knows: common }

/** Reads the fields after the status and the number of bytes. */
function readRest(line: string, from: number): Rest {
  const quote = line.indexOf('"', from)
  if (quote === -1) return nothingElse
  const duration = line.endsWith('ms') ? /" (\d+)ms$/.exec(line)?.[1] : undefined
  const fields: string[] = []
  for (let start = quote; start !== -1 && fields.length < 3;) {
    const end = endOfQuoted(line, start + 1)
    if (end === -1) break
    fields.push(line.slice(start + 1, end))
    start = line.indexOf('"', end + 1)
  }
  const [referer = '-', userAgent = '-', third] = fields
  const headers: Record<string, string> = {}
  if (referer !== '-') headers['referer'] = unescaped(referer)
  if (userAgent !== '-') headers['user-agent'] = unescaped(userAgent)
  if (duration !== undefined) return { durationMs: Number(duration), headers, knows: traefik }
  // It may be another field, such as the host, a time, or the name of a server.
  if (third === undefined || !(third === '-' || endsWithAddress(unescaped(third))))
    return { durationMs: undefined, headers, knows: combined }
  if (third !== '-') headers['x-forwarded-for'] = unescaped(third)
  return { durationMs: undefined, headers, knows: withForwarded }
}

/** Whether a proxy may have written it as `X-Forwarded-For`: what the client sent is before the address that the proxy appends. */
function endsWithAddress(text: string): boolean {
  return parseEntry(text, text.lastIndexOf(',') + 1, text.length) !== undefined
}

function endOfQuoted(line: string, from: number): number {
  let end = line.indexOf('"', from)
  while (end !== -1 && isEscaped(line, end, from)) end = line.indexOf('"', end + 1)
  return end
}

/** Whether the quote follows an odd number of backslashes. */
function isEscaped(line: string, at: number, from: number): boolean {
  let start = at
  while (start > from && line[start - 1] === '\\') start -= 1
  return (at - start) % 2 === 1
}

/** Decodes the escapes of nginx and Apache: `\xHH` for unprintable bytes, and a backslash before `"` and `\`. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\(?:x([0-9a-f]{2})|(.))/gi, (_, hex: string | undefined, other: string) =>
    hex === undefined ? other : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const timeForm = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/
let lastText = ''
let lastMs: number | undefined

/** Caches the last time, because many lines have the same second. */
function readTime(text: string): number | undefined {
  if (text === lastText) return lastMs
  lastText = text
  lastMs = parseLogTime(text)
  return lastMs
}

/** Parses a time such as `10/Oct/2000:13:55:36 -0700`. Returns milliseconds since 1970. */
export function parseLogTime(text: string): number | undefined {
  const [, day, month = '', year, hours, minutes, seconds, sign, zoneHours, zoneMinutes] =
    timeForm.exec(text) ?? []
  const monthIndex = months.indexOf(month)
  if (monthIndex === -1 || Number(day) > 31 || Number(hours) > 24 || Number(minutes) > 59) return undefined
  const local = Date.UTC(
    Number(year),
    monthIndex,
    Number(day),
    Number(hours),
    Number(minutes),
    Number(seconds),
  )
  const zoneMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000
  return sign === '+' ? local - zoneMs : local + zoneMs
}
