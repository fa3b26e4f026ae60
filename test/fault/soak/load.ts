import { Agent, request } from 'node:http'
import { eventually } from '../../support/wait/eventually.ts'

export type Load = {
  /** The number of responses by status. `broken` counts connections that ended without a complete response. */
  readonly statuses: ReadonlyMap<number | 'broken', number>
  /** Resolves when every request sent has been answered. */
  stop(): Promise<void>
}

/** The interval between batches of requests. */
const PART_MS = 20

/**
 * Sends requests at a steady rate, whether or not they succeed. Each client in turn asks one gateway and then the next. Every tenth request
 * comes from one of ten clients that are over their limit most of the time.
 */
export function startLoad(options: {
  readonly ports: readonly number[]
  readonly clients: number
  readonly requestsPerSecond: number
  /** Maximum number of connections to each port. */
  readonly connections: number
}): Load {
  const { ports, clients, requestsPerSecond, connections } = options
  const statuses = new Map<number | 'broken', number>()
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  let sent = 0
  let waiting = 0

  function count(status: number | 'broken'): void {
    waiting -= 1
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }

  function send(): void {
    const client = sent % 10 === 0 ? (sent / 10) % 10 : sent % clients
    const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
    const outgoing = request({
      agent,
      host: '127.0.0.1',
      port: ports[sent % ports.length],
      path: sent % 50 === 0 ? '/strict' : '/',
      headers: { 'x-forwarded-for': address },
    })
    sent += 1
    waiting += 1
    outgoing.on('response', (response) => {
      response.resume()
      response.once('close', () => count(response.complete ? (response.statusCode ?? 0) : 'broken'))
    })
    outgoing.once('error', () => count('broken'))
    outgoing.end()
  }

  const startedAtMs = performance.now()
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAtMs) * requestsPerSecond) / 1000
    // Requests that this process could not send in time are not all made up for at once.
    const limit = sent + (4 * requestsPerSecond * PART_MS) / 1000
    while (sent < due && sent < limit) send()
  }, PART_MS)

  return {
    statuses,
    async stop() {
      clearInterval(timer)
      await eventually('all are answered', () => waiting <= 0)
      agent.destroy()
    },
  }
}
