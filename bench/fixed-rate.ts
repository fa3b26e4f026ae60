import { connect, type Socket } from 'node:net'
import { percentile, type LatencySample } from './results.ts'

export type FixedRate = {
  readonly port: number
  readonly path: string
  readonly requestsPerSecond: number
  readonly seconds: number
  readonly connections: number
}

/**
 * Sends requests at a fixed rate, whether or not earlier ones have been answered, and measures each from the instant at
 * which it was *to be sent*: a server that stalls is charged for all that should have come meanwhile. Neither wrk (which
 * has no rate in Debian) nor `h2load --rps` (which measures from when a connection got free) does this.
 *
 * It takes a core for itself: timers of Node have a grain of a millisecond, which is more than what is measured here, so
 * the event loop is kept spinning.
 */
export async function measureAtFixedRate(options: FixedRate): Promise<LatencySample> {
  const { port, path, requestsPerSecond, seconds, connections } = options
  const total = Math.floor(requestsPerSecond * seconds)
  const intervalMs = 1000 / requestsPerSecond
  const latenciesMs = new Float64Array(total)
  const lateMs = new Float64Array(total)
  const message = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`, 'latin1')

  const idle: Connection[] = []
  let sent = 0
  let answered = 0
  let failure: Error | undefined

  const opened = await Promise.all(Array.from({ length: connections }, () => openConnection(port)))
  for (const socket of opened) {
    const connection: Connection = { socket, intendedMs: 0, received: '' }
    idle.push(connection)
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      connection.received += text
      if (!isComplete(connection.received)) return
      latenciesMs[answered++] = performance.now() - connection.intendedMs
      if (!connection.received.startsWith('HTTP/1.1 200 ')) failure = new Error(connection.received)
      connection.received = ''
      idle.push(connection)
    })
    socket.on('error', (error) => (failure = error))
    socket.on('close', () => {
      if (answered < total) failure ??= new Error('a connection was closed')
    })
  }

  const startMs = performance.now() + 10
  const deadlineMs = startMs + seconds * 1000 + 10_000
  await new Promise<void>((resolve, reject) => {
    const spin = (): void => {
      const nowMs = performance.now()
      while (sent < total && startMs + sent * intervalMs <= nowMs) {
        // In turn. Where all are busy the request waits here, and its time runs.
        const connection = idle.shift()
        if (!connection) break
        connection.intendedMs = startMs + sent * intervalMs
        lateMs[sent++] = nowMs - connection.intendedMs
        connection.socket.write(message)
      }
      if (failure) reject(failure)
      else if (answered === total) resolve()
      else if (nowMs > deadlineMs) reject(new Error(`${total - answered} requests were not answered`))
      else setImmediate(spin)
    }
    spin()
  }).finally(() => {
    for (const socket of opened) socket.destroy()
  })

  latenciesMs.sort()
  lateMs.sort()
  return {
    p50Us: percentile(latenciesMs, 0.5) * 1000,
    p99Us: percentile(latenciesMs, 0.99) * 1000,
    p999Us: percentile(latenciesMs, 0.999) * 1000,
    sentLateP99Us: percentile(lateMs, 0.99) * 1000,
  }
}

type Connection = { readonly socket: Socket; intendedMs: number; received: string }

/** Resolves with a connection to a server on this machine. */
export function openConnection(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
      socket.off('error', reject)
      resolve(socket)
    })
    socket.once('error', reject)
  })
}

/** Whether a response with a declared length is there as a whole. */
export function isComplete(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(received)?.[1]
  if (length === undefined) throw new Error(`a response without a length:\n${received}`)
  return received.length >= headEnd + 4 + Number(length)
}
