import { splitForwarded } from './forwarded-peer.ts'
import { parseLogTime } from './text-lines.ts'
import { createDurationReader, epochMs, parseGoDuration, validDuration } from './times.ts'
import { noHeaders, type Knowledge, type LoggedRequest, type ReadLine } from './logged-request.ts'

type Fields = Readonly<Record<string, unknown>>

/** Reads a line of one format; undefined if the line is obviously in another format. */
export type JsonReader = (fields: Fields) => ReadLine | undefined

const noTime = { why: 'the time cannot be read' }
const noAddress = { why: 'it has no client address' }
const none: ReadonlySet<string> = new Set()

const sluice: Knowledge = { format: 'sluice', query: false, headers: none }

/** Reads this gateway's own access log (`ACCESS_LOG`). Its time is the end of the request. */
export const readSluice: JsonReader = (fields) => {
  const { msg, requestId, time, durationMs, method, path, client, status } = fields
  if (typeof requestId !== 'string' && fields['name'] !== 'gateway') return undefined
  if (msg !== 'request' || typeof method !== 'string' || typeof path !== 'string') return 'other'
  const endMs = timeOf(time)
  if (endMs === undefined) return noTime
  if (typeof client !== 'string') return { why: 'it has no client address (LOG_ADDRESSES)' }
  // An empty path means that the gateway rejected the target.
  if (path === '') return 'other'
  return {
    ...spanTo(endMs, numberOf(durationMs)),
    ip: client,
    method,
    target: path,
    host: undefined,
    status: numberOf(status),
    headers: noHeaders,
    knows: sluice,
  }
}

const caddy: Knowledge = { format: 'caddy', query: true, headers: 'all' }

/**
 * Makes a reader for Caddy's log. Its time is the end of the request. Caddy derives `client_ip` from `remote_ip` by its `trusted_proxies`.
 * Times and durations can be in any format of `time_format` and `duration_format`.
 */
export function createCaddyReader(): JsonReader {
  const durationOf = createDurationReader(1e6)
  return (fields) => readCaddy(fields, durationOf)
}

function readCaddy(
  { request, ts, duration, status, logger, level, msg }: Fields,
  durationOf: (count: number) => number,
): ReadLine | undefined {
  // By default, Caddy writes about its start, its configuration and its certificates into the same log.
  if (request === undefined && status === undefined && ts !== undefined)
    return typeof level === 'string' && typeof msg === 'string' ? 'other' : undefined
  if (!isFields(request)) return undefined
  // Caddy also writes a line about an error, or about a step of a handler, with the request.
  if (typeof logger === 'string' && !logger.startsWith('http.log.access')) return 'other'
  const { method, uri, host, remote_ip: remoteIp, client_ip: clientIp = remoteIp, headers } = request
  if (typeof method !== 'string' || typeof uri !== 'string') return undefined
  const endMs = timeOf(ts)
  if (endMs === undefined) return noTime
  if (typeof clientIp !== 'string') return noAddress
  const taken = typeof duration === 'number' ? durationOf(duration) : parseGoDuration(textOf(duration) ?? '')
  return {
    ...spanTo(endMs, taken),
    ip: clientIp,
    method,
    target: uri,
    host: textOf(host),
    status: numberOf(status),
    headers: headersOf(isFields(headers) ? Object.entries(headers) : []),
    knows: caddy,
  }
}

const traefik: Knowledge = { format: 'traefik-json', query: true, headers: none }

/**
 * Reads Traefik's log. Its time is the start of the request, and its durations are in nanoseconds. `ClientHost` is the `X-Forwarded-For`
 * of a request that came from a trusted proxy.
 */
export const readTraefik: JsonReader = (fields) => {
  const {
    RequestMethod: method,
    RequestPath: path,
    ClientHost: ip,
    RequestHost: host,
    Duration: duration,
  } = fields
  if (typeof method !== 'string' || typeof path !== 'string') return undefined
  const timeMs = timeOf(fields['StartUTC'] ?? fields['StartLocal'] ?? fields['time'])
  if (timeMs === undefined) return noTime
  if (typeof ip !== 'string') return noAddress
  const { peer, forwardedFor } = splitForwarded(ip)
  const nanoseconds = numberOf(duration)
  const sent = Object.entries(fields).flatMap(([name, value]): [string, unknown][] =>
    name.startsWith('request_') ? [[name.slice('request_'.length), value]] : [],
  )
  return {
    timeMs,
    durationMs: validDuration(nanoseconds === undefined ? undefined : nanoseconds / 1e6),
    ip: peer,
    method,
    target: path,
    host: textOf(host),
    status: numberOf(fields['DownstreamStatus']),
    headers: { ...headersOf(sent), ...forwardedFor },
    knows: traefik,
  }
}

const nginx: Knowledge = { format: 'nginx-json', query: true, headers: none }

/**
 * Makes a reader for nginx's log with `escape=json`, whose fields are named after nginx's variables. Its time is the end of the request.
 * Software between nginx and the file may have converted seconds to microseconds.
 */
export function createNginxReader(): JsonReader {
  const durationOf = createDurationReader(1e3)
  return (fields) => readNginx(fields, durationOf)
}

function readNginx(fields: Fields, durationOf: (count: number) => number): ReadLine | undefined {
  const { remote_addr: ip, request, http_host: httpHost, host = httpHost, request_time: taken, msec } = fields
  const [requested, target] = typeof request === 'string' ? request.split(' ') : []
  const method = fields['request_method'] ?? requested
  const uri = fields['request_uri'] ?? target
  if (ip === undefined || typeof method !== 'string' || typeof uri !== 'string') return undefined
  const endMs = timeOf(numberOf(msec) ?? fields['time_iso8601'] ?? fields['time_local'])
  if (endMs === undefined) return noTime
  if (typeof ip !== 'string') return noAddress
  const duration = numberOf(taken)
  const sent = Object.entries(fields).flatMap(([name, value]): [string, unknown][] =>
    name.startsWith('http_') && value !== ''
      ? [[name.slice('http_'.length).replaceAll('_', '-'), value]]
      : [],
  )
  return {
    ...spanTo(endMs, duration === undefined ? undefined : durationOf(duration)),
    ip,
    method,
    target: uri,
    host: textOf(host),
    status: numberOf(fields['status']),
    headers: headersOf(sent),
    knows: nginx,
  }
}

function spanTo(endMs: number, taken: number | undefined): Pick<LoggedRequest, 'timeMs' | 'durationMs'> {
  const durationMs = validDuration(taken)
  return { timeMs: endMs - (durationMs ?? 0), durationMs }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the known headers. Leaves out headers that frame a request, which do not matter here, and headers that the log hides. */
function headersOf(sent: readonly (readonly [string, unknown])[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of sent) {
    const lowerCase = name.toLowerCase()
    const text = Array.isArray(value) ? value.join(', ') : value
    if (typeof text === 'string' && text !== 'REDACTED' && !framing.has(lowerCase)) headers[lowerCase] = text
  }
  return headers
}

const framing = new Set(['connection', 'content-length', 'expect', 'host', 'transfer-encoding', 'upgrade'])

function timeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return epochMs(value)
  if (typeof value !== 'string') return undefined
  const timeMs = Date.parse(value)
  return Number.isNaN(timeMs) ? parseLogTime(value) : timeMs
}

function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
