import { readFileSync } from 'node:fs'

/**
 * What the benchmark tells each server it starts. These servers are plain JavaScript because the packages they show, and
 * so their types, are there only after `npm ci --prefix bench`.
 */
export const port = Number(process.env.PORT)
export const backendUrl = process.env.BACKEND_URL
/** What the backend answers with. */
export const body = process.env.BODY
/** Where counters are kept; in the process where undefined. */
export const redisUrl = process.env.REDIS_URL
/** Connections to the backend that are kept alive: as many as wrk opens, so that no request waits for one. */
export const connections = Number(process.env.CONNECTIONS)
/** The two limits that every subject has: one that is never reached, one that always is. */
export const windowMs = 3_600_000
export const hugeQuota = 1_000_000_000
export const tinyQuota = 1

/** The certificate for clients, and its key. */
export function readPair() {
  return { cert: readFileSync(process.env.TLS_CERT_FILE), key: readFileSync(process.env.TLS_KEY_FILE) }
}

/** The usual fields of a proxy: what every subject adds to each request. */
export function addForwardedFields(headers, request, clientAddress) {
  headers['x-forwarded-for'] = request.headers['x-forwarded-for']
    ? `${request.headers['x-forwarded-for']}, ${request.socket.remoteAddress}`
    : request.socket.remoteAddress
  headers['x-forwarded-proto'] = 'http'
  headers['x-forwarded-host'] = request.headers.host
  headers['x-real-ip'] = clientAddress
  return headers
}

// Ended by the benchmark, or by the profiler, which writes what it has seen when the process ends by itself.
process.once('SIGTERM', () => process.exit())
