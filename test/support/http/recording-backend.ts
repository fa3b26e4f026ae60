import { hash } from 'node:crypto'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { faultsOf, LenientRequestReader, valuesOf, type RecordedRequest } from './lenient-requests.ts'

/** The response of a backend in pieces, and what the backend does after it. */
export type ScriptedAnswer = {
  /** Latin-1 text, one character a byte. Each piece is sent on its own. */
  readonly pieces: readonly string[]
  /** `close` ends the connection, `reset` resets it, `keep` waits for the next request. */
  readonly then: 'keep' | 'close' | 'reset'
  /** Answers once the head has arrived, before the content. */
  readonly early?: boolean | undefined
}

/** A backend that reads leniently, records everything, and sends scripted responses. */
export type RecordingBackend = {
  readonly url: string
  readonly port: number
  /** Every request, complete or not, in the order in which their heads arrived. */
  readonly requests: readonly RecordedRequest[]
  /** Returns the requests of one client, by the address that the gateway sends in `X-Real-IP`. */
  requestsFrom(address: string): RecordedRequest[]
  /** Resolves when the next request of that client has begun. */
  nextFrom(address: string): Promise<RecordedRequest>
  /** Sets the response to requests for a target. Others get 200 with method and target as its body, or 101 if they are handshakes. */
  answer(target: string, answer: ScriptedAnswer): void
  /** Everything in the requests that could be misread, and bytes that belong to no request. */
  faults(): string[]
  close(): Promise<void>
}

export async function startRecordingBackend(): Promise<RecordingBackend> {
  const requests: RecordedRequest[] = []
  const byClient = new Map<string, RecordedRequest[]>()
  const readers = new Set<LenientRequestReader>()
  const sockets = new Set<Socket>()
  const waiting = new Map<string, (request: RecordedRequest) => void>()
  const answers = new Map<string, ScriptedAnswer>()

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
        byClient.set(address, [...(byClient.get(address) ?? []), request])
        waiting.get(address)?.(request)
        waiting.delete(address)
      }
      for (const request of begun)
        if (answers.get(request.target)?.early) void send(socket, reader, request, answers)
      for (const request of completed)
        if (!answers.get(request.target)?.early) void send(socket, reader, request, answers)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    requestsFrom: (address) => [...(byClient.get(address) ?? [])],
    nextFrom: (address) => new Promise((resolve) => waiting.set(address, resolve)),
    answer: (target, answer) => void answers.set(target, answer),
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

async function send(
  socket: Socket,
  reader: LenientRequestReader,
  request: RecordedRequest,
  answers: ReadonlyMap<string, ScriptedAnswer>,
): Promise<void> {
  const { pieces, then } = answers.get(request.target) ?? usualAnswer(request)
  if (pieces.join('').startsWith('HTTP/1.1 101')) reader.beginTunnel(request)
  for (const piece of pieces) {
    if (!socket.writable) return
    await new Promise<void>((written) => socket.write(piece, 'latin1', () => written()))
  }
  if (then === 'close') socket.end()
  // The written bytes must arrive first, as the reset would discard them.
  if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 20)
}

function usualAnswer(request: RecordedRequest): ScriptedAnswer {
  if (valuesOf(request, 'upgrade').length > 0) return { pieces: [agreementTo(request)], then: 'keep' }
  const body = request.method === 'HEAD' ? '' : `${request.method} ${request.target}`
  return { pieces: [`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`], then: 'keep' }
}

// RFC 6455 section 4.2.2.
function agreementTo(request: RecordedRequest): string {
  const [key = ''] = valuesOf(request, 'sec-websocket-key')
  const accept = hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')
  return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
}
