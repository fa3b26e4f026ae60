import { createServer, type RequestListener } from 'node:http'
import { createServer as createRawServer, type AddressInfo, type Socket } from 'node:net'
import { atEndOfFile } from '../run/at-end.ts'

export type PreforkBackend = {
  readonly url: string
  readonly port: number
  /** Connections that a worker has served or is serving. */
  readonly accepted: number
}

const closers = new Set<() => void>()

atEndOfFile(() => {
  for (const close of closers) close()
  closers.clear()
})

/**
 * A backend with a fixed number of workers, like Apache's prefork, Starman or PHP's built-in server. Each worker serves one connection,
 * request by request, until it is closed. Further connections wait until then: established, but not accepted. The backend keeps an idle
 * connection open for longer than any test, and announces that in `Keep-Alive`.
 */
export async function startPreforkBackend(workers: number, answer: RequestListener): Promise<PreforkBackend> {
  const http = createServer({ keepAliveTimeout: 600_000, requestTimeout: 0 }, answer)
  const waiting: Socket[] = []
  const open = new Set<Socket>()
  let free = workers
  let accepted = 0
  const acceptNext = (): void => {
    const socket = free > 0 ? waiting.shift() : undefined
    if (!socket) return
    free--
    accepted++
    socket.on('close', () => {
      free++
      acceptNext()
    })
    http.emit('connection', socket)
    socket.resume()
  }
  const server = createRawServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    waiting.push(socket)
    acceptNext()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  closers.add(() => {
    server.close()
    waiting.length = 0
    for (const socket of open) socket.destroy()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    get accepted() {
      return accepted
    },
  }
}
