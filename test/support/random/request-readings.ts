import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Duplex } from 'node:stream'
import { RequestParser } from '../../../proxy/http/http1/parser/request-parser.ts'
import { RequestSyntaxError } from '../../../proxy/http/http1/parser/syntax-error.ts'
import { asRead } from '../http/as-read.ts'

/** A request as a parser has read it. */
export type RequestRead = {
  readonly method: string
  readonly target: string
  readonly version: string
  /** Name, value, name, value… in the order received, with names in lower case. */
  readonly fields: readonly string[]
  /** Latin-1 text, one character a byte. */
  body: string
  trailers: readonly string[]
  /** The index of the piece that completed the request; undefined if it is incomplete. */
  endedIn: number | undefined
}

/** How a parser has read the bytes of one connection. */
export type RequestsReading = {
  readonly requests: RequestRead[]
  /** Why the rest was refused. */
  refused: string | undefined
  /** Whether nothing after the last request is read, because it closes the connection, or because a later step refuses its framing. */
  stopped: boolean
}

const maxHeadBytes = 64 * 1024

/** Reads requests with the gateway's own parser. */
export function readRequestsHere(pieces: readonly Buffer[]): RequestsReading {
  const reading: RequestsReading = { requests: [], refused: undefined, stopped: false }
  let fed = 0
  const last = (): RequestRead | undefined => reading.requests.at(-1)
  let persistent = true
  const end = (): void => {
    Object.assign(last() ?? {}, { endedIn: fed })
    if (!persistent) reading.stopped = true
  }
  const parser = new RequestParser(
    {
      onHead: ({ method, url, version, fields, framing, persistent: isKept }) => {
        const read = { method, target: url, version, fields, body: '', trailers: [], endedIn: undefined }
        reading.requests.push(read)
        persistent = isKept
        if (framing === 'none') end()
        else if (framing === 'unknown') reading.stopped = true
      },
      onBody: (piece) => {
        const request = last()
        if (request) request.body += piece.toString('latin1')
      },
      onBodyEnd: (trailers) => {
        Object.assign(last() ?? {}, { trailers })
        end()
      },
    },
    { maxBytes: maxHeadBytes, maxFields: 10_000 },
  )
  try {
    for (const piece of pieces) {
      for (let at = 0; at < piece.length && !reading.stopped;) at = parser.execute(piece, at)
      if (reading.stopped) break
      fed++
    }
  } catch (error) {
    if (!(error instanceof RequestSyntaxError)) throw error
    reading.refused = error.message
  }
  return reading
}

/** Reads requests with the server of `node:http`, whose parser is llhttp, in its strictest mode. */
export function createNodeReader(): (pieces: readonly Buffer[]) => RequestsReading {
  let reading: RequestsReading
  let fed = 0
  let incoming: { request: IncomingMessage; read: RequestRead }[] = []
  let isLost = false
  const take = (request: IncomingMessage): void => {
    request.on('error', () => undefined)
    if (isLost) return
    const { method = '', url = '', httpVersion, rawHeaders } = request
    const read = {
      method,
      target: url,
      version: httpVersion,
      fields: asRead(rawHeaders),
      body: '',
      trailers: [] as string[],
      endedIn: undefined,
    }
    reading.requests.push(read)
    incoming.push({ request, read })
    // After an upgrade that is not accepted, Node drops the bytes that it has already read, and continues somewhere later.
    isLost = request.headers.upgrade !== undefined && /upgrade/i.test(request.headers.connection ?? '')
    reading.stopped ||= isLost
  }
  const server: Server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: maxHeadBytes,
    requireHostHeader: false,
    shouldUpgradeCallback: () => false,
  })
  server.maxHeadersCount = 0
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, take)
  server.on('connect', (request: IncomingMessage) => {
    take(request)
    for (const { read } of incoming.slice(-1)) if (read.method === 'CONNECT') read.endedIn = fed
    reading.stopped = true
  })
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException) => {
    if (code === 'HPE_CLOSED_CONNECTION') reading.stopped = true
    else reading.refused ??= code
  })
  const look = (): void => {
    for (const { request, read } of incoming) {
      for (;;) {
        const piece = request.read() as Buffer | null
        if (!piece) break
        read.body += piece.toString('latin1')
      }
      if (request.complete && read.endedIn === undefined) {
        read.endedIn = fed
        read.trailers = asRead(request.rawTrailers)
      }
    }
  }
  return (pieces) => {
    reading = { requests: [], refused: undefined, stopped: false }
    incoming = []
    isLost = false
    fed = 0
    const socket = new Duplex({
      read: () => undefined,
      write: (_chunk, _encoding, written) => written(),
    })
    socket.on('error', () => undefined)
    server.emit('connection', socket)
    // Emitted, because a stream may join pieces that are pushed into it. The server reads each piece before `emit` returns.
    for (const piece of pieces) {
      if (piece.length > 0) socket.emit('data', piece)
      look()
      if (reading.refused !== undefined) break
      fed++
    }
    socket.destroy()
    return reading
  }
}

/** Describes how a request read by the gateway differs for a reader that parses as Node does; undefined if it does not. */
export function differenceBetween(here: RequestsReading, node: RequestsReading): string | undefined {
  for (const [i, request] of here.requests.entries()) {
    const other = node.requests[i]
    // A body refused in the same piece as its head may not have been emitted there.
    if (!other && node.stopped) return undefined
    if (!other)
      return request.endedIn === undefined && node.refused !== undefined
        ? undefined
        : `request ${i} is not read`
    if (headOf(request) !== headOf(other)) return `head ${i}`
    if (request.endedIn === undefined) {
      const shares = other.body.startsWith(request.body) || request.body.startsWith(other.body)
      return shares ? undefined : `body ${i}`
    }
    if (request.body !== other.body) return `body ${i}`
    if (request.trailers.join('\n') !== other.trailers.join('\n')) return `trailers ${i}`
    if (request.endedIn !== other.endedIn) return `end ${i}`
  }
  return undefined
}

function headOf({ method, target, version, fields }: RequestRead): string {
  return [method, target, version, ...fields].join('\n')
}
