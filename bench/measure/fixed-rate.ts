import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { percentile, type LatencySample } from '../report/results.ts'

export type FixedRate = {
  readonly port: number
  readonly path: string
  readonly requestsPerSecond: number
  readonly seconds: number
  readonly connections: number
}

/**
 * Sends requests at a fixed rate, whether or not earlier ones have been answered. The latency of a request is measured from when it is due,
 * even if it first waits for a connection because the server is slow with others: a server that stalls is charged for all requests that
 * came meanwhile. Neither wrk, which has no rate option in Debian, nor `h2load --rps`, which measures from when a connection became free,
 * does this.
 *
 * Delays of the generator itself are not latency of a server, and are reported separately. The generator sleeps until a request is due
 * instead of spinning, because on a small machine it would take a core from the server.
 */
export async function measureAtFixedRate(options: FixedRate): Promise<LatencySample> {
  const { port, path, requestsPerSecond, seconds, connections } = options
  const total = Math.floor(requestsPerSecond * seconds)
  const intervalMs = 1000 / requestsPerSecond
  const latenciesMs = new Float64Array(total)
  const lateMs = new Float64Array(total)
  const message = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`, 'latin1')

  const idle: Connection[] = []
  /** When the requests that wait for a connection were due. */
  const waitingMs: number[] = []
  let due = 0
  let answered = 0

  const opened = await Promise.all(Array.from({ length: connections }, () => openConnection(port)))
  const pacer = new Worker(new URL('pacer.ts', import.meta.url), { workerData: { intervalMs, total } })
  let deadline: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      const send = (connection: Connection, dueMs: number): void => {
        connection.dueMs = dueMs
        connection.socket.write(message)
      }
      for (const socket of opened) {
        const connection: Connection = { socket, dueMs: 0, received: '' }
        idle.push(connection)
        socket.setEncoding('latin1')
        socket.on('data', (text: string) => {
          connection.received += text
          if (!isComplete(connection.received)) return
          latenciesMs[answered++] = performance.now() - connection.dueMs
          if (answered === total) resolve()
          if (!connection.received.startsWith('HTTP/1.1 200 ')) reject(new Error(connection.received))
          connection.received = ''
          const waitingSince = waitingMs.shift()
          if (waitingSince === undefined) idle.push(connection)
          else send(connection, waitingSince)
        })
        socket.on('error', reject)
        socket.on('close', () => reject(new Error('a connection was closed')))
      }

      pacer.on('error', reject)
      pacer.on('message', (plannedMs: number) => {
        const nowMs = performance.now()
        lateMs[due++] = performance.timeOrigin + nowMs - plannedMs
        // Connections take turns, so that all are in use.
        const connection = idle.shift()
        if (connection) send(connection, nowMs)
        else waitingMs.push(nowMs)
      })
      deadline = setTimeout(
        () => reject(new Error(`${total - answered} had no answer`)),
        seconds * 1000 + 10_000,
      )
    })
  } finally {
    clearTimeout(deadline)
    await pacer.terminate()
    for (const socket of opened) socket.destroy()
  }

  latenciesMs.sort()
  lateMs.sort()
  return {
    p50Us: percentile(latenciesMs, 0.5) * 1000,
    p99Us: percentile(latenciesMs, 0.99) * 1000,
    p999Us: percentile(latenciesMs, 0.999) * 1000,
    sentLateP99Us: percentile(lateMs, 0.99) * 1000,
  }
}

type Connection = { readonly socket: Socket; dueMs: number; received: string }

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

/** Whether a response with a declared length has arrived completely. */
export function isComplete(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(received)?.[1]
  if (length === undefined) throw new Error(`a response without a length:\n${received}`)
  return received.length >= headEnd + 4 + Number(length)
}
