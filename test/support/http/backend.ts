import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createRawServer, type AddressInfo, type Socket } from 'node:net'
import { atEndOfFile } from '../run/at-end.ts'

const closers = new Set<() => void>()

atEndOfFile(() => {
  for (const close of closers) close()
  closers.clear()
})

export type SeenRequest = {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
}

export type Backend = {
  readonly url: string
  readonly port: number
  readonly server: Server
  /** Every request that arrived, in order. */
  readonly seen: SeenRequest[]
}

/** A backend that records its requests, and answers each with 200 and `ok` unless `answer` is given. */
export async function startBackend(answer?: RequestListener): Promise<Backend> {
  const seen: SeenRequest[] = []
  const server = createServer((request, response) => {
    seen.push({ method: request.method ?? '', url: request.url ?? '', rawHeaders: request.rawHeaders })
    if (answer) answer(request, response)
    else request.resume().on('end', () => response.end('ok'))
  })
  const port = await listen(server)
  closers.add(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${port}`, port, server, seen }
}

export type RawBackend = { readonly url: string; readonly port: number; readonly connections: Socket[] }

/** A backend of raw sockets, for responses that no HTTP server would send. `serve` is called for each connection. */
export async function startRawBackend(serve: (socket: Socket, index: number) => void): Promise<RawBackend> {
  const connections: Socket[] = []
  const server = createRawServer((socket) => {
    connections.push(socket)
    socket.on('error', () => undefined)
    serve(socket, connections.length - 1)
  })
  const port = await listen(server)
  closers.add(() => {
    server.close()
    for (const socket of connections) socket.destroy()
  })
  return { url: `http://127.0.0.1:${port}`, port, connections }
}

function listen(server: {
  listen(port: number, host: string, done: () => void): unknown
  address(): unknown
}): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

/** The values of a field, one for each line of it, as the backend received them. */
export function fieldLines(
  { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'> | SeenRequest,
  name: string,
): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
