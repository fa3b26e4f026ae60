import { once } from 'node:events'
import type { Socket } from 'node:net'
import { errorText } from '../../../../shared/error-text.ts'
import type { ServerPlace } from './server.ts'

/**
 * Probes the health of a server.
 *
 * @param signal aborted when the time for an answer has passed
 * @returns undefined if the server is healthy, otherwise why it is not; never rejects
 */
export type Probe = (place: ServerPlace, signal: AbortSignal) => Promise<string | undefined>

const tooLate = 'it does not answer in time'

/** How many bytes of the response's body are read, so that a server is not interrupted while it sends a short one. */
const MAX_BYTES = 65_536

export type ProbeRequest = {
  /** The path to request; the path of the server's URL does not matter. */
  readonly path: string
  /** The `Host` header. If undefined, that of the URL is sent. */
  readonly host: string | undefined
}

/**
 * Probes with a GET on a connection of its own, so that it detects a server that accepts no more connections. A response 200 to
 * 399 passes, as for Kubernetes; redirects are not followed.
 *
 * @param open opens a connection as requests do; calls `ready` once it can be written to
 */
export function createProbe(
  { path, host }: ProbeRequest,
  open: (place: ServerPlace) => (ready: () => void) => Socket,
): Probe {
  // Loaded only if servers are probed, and before the first probe is due.
  const loading = import('undici')
  return async (place, signal) => {
    const { Client } = await loading
    const isTooLate = (): boolean => signal.aborted
    if (isTooLate()) return tooLate
    const { url } = place
    const scheme = url.protocol === 'https:' ? 'https' : 'http'
    const sockets = new Set<Socket>()
    const client = new Client(`${scheme}://${url.host}`, {
      connect(_, connected) {
        const fail = (error: Error): void => connected(error, null)
        const opened = open(place)(() => {
          opened.off('error', fail)
          // With h2c://, there is no TLS handshake that could negotiate HTTP/2.
          if (url.protocol === 'h2c:') Object.assign(opened, { alpnProtocol: 'h2' })
          connected(null, opened)
        })
        opened.once('error', fail)
        sockets.add(opened)
      },
    })
    const ask = async (): Promise<string | undefined> => {
      const headers = { 'user-agent': 'sluice-health-check', ...(host !== undefined && { host }) }
      const { statusCode, body } = await client.request({ method: 'GET', path, headers, signal })
      await body.dump({ limit: MAX_BYTES, signal }).catch(() => undefined)
      return statusCode >= 200 && statusCode < 400 ? undefined : `it answers ${statusCode}`
    }
    // A client that is aborted while it connects may settle neither its request nor its end.
    const aborted = once(signal, 'abort').then(() => tooLate)
    try {
      return await Promise.race([ask(), aborted])
    } catch (error) {
      return isTooLate() ? tooLate : errorText(error)
    } finally {
      client.destroy().catch(() => undefined)
      for (const socket of sockets) socket.destroy()
    }
  }
}
