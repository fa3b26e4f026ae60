import { createServer, type AddressInfo, type Socket } from 'node:net'
import { faultsOf, LenientRequestReader, valuesOf, type RecordedRequest } from './lenient-requests.ts'

/** A backend that reads leniently, records everything and answers as each request asks it to. */
export type RecordingBackend = {
  readonly url: string
  readonly port: number
  /** Every request, whole or not, in the order in which their heads arrived. */
  readonly requests: readonly RecordedRequest[]
  /** Those that came from one client, by the address that the gateway gives in `X-Real-IP`. */
  requestsFrom(address: string): RecordedRequest[]
  /** Resolves when one more request of that client has begun. */
  nextFrom(address: string): Promise<RecordedRequest>
  /** Everything that a request could be misread by, of all requests; and bytes that belong to none. */
  faults(): string[]
  close(): Promise<void>
}

/**
 * How a request tells the backend what to answer, in fields of its own:
 *
 * - `x-answer`: the bytes of the answer in base64; else 200 with method and target as its body, or a 101 to a handshake
 * - `x-when`: `head` answers before the body has arrived
 * - `x-then`: `close` ends the connection after the answer, `reset` resets it, `keep` does neither
 */
export async function startRecordingBackend(): Promise<RecordingBackend> {
  const requests: RecordedRequest[] = []
  const readers = new Set<LenientRequestReader>()
  const sockets = new Set<Socket>()
  const waiting = new Map<string, (request: RecordedRequest) => void>()

  const server = createServer({ noDelay: true }, (socket) => {
    const reader = new LenientRequestReader()
    readers.add(reader)
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      const { begun, completed } = reader.push(chunk.toString('latin1'))
      for (const request of begun) {
        requests.push(request)
        const address = clientOf(request)
        waiting.get(address)?.(request)
        waiting.delete(address)
        if (valuesOf(request, 'x-when').includes('head')) answer(socket, reader, request)
      }
      for (const request of completed)
        if (!valuesOf(request, 'x-when').includes('head')) answer(socket, reader, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    requestsFrom: (address) => requests.filter((request) => clientOf(request) === address),
    nextFrom: (address) => new Promise((resolve) => waiting.set(address, resolve)),
    faults: () => [
      ...requests.flatMap(faultsOf),
      ...[...readers].map(({ leftOver }) => leftOver).filter((text) => text !== ''),
    ],
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

function clientOf(request: RecordedRequest): string {
  return valuesOf(request, 'x-real-ip')[0] ?? 'unknown'
}

function answer(socket: Socket, reader: LenientRequestReader, request: RecordedRequest): void {
  const scripted = valuesOf(request, 'x-answer')[0]
  const bytes =
    scripted === undefined ? defaultAnswer(request) : Buffer.from(scripted, 'base64').toString('latin1')
  if (bytes.startsWith('HTTP/1.1 101')) reader.beginTunnel(request)
  socket.write(bytes, 'latin1')
  const then = valuesOf(request, 'x-then')[0]
  if (then === 'close') socket.end()
  // After what was written has gone out, or there would be nothing to see of it.
  if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 20)
}

function defaultAnswer(request: RecordedRequest): string {
  if (valuesOf(request, 'upgrade').length > 0)
    return 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const body = request.method === 'HEAD' ? '' : `${request.method} ${request.target}`
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
