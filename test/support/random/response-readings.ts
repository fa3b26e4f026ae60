import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { ResponseSyntaxError } from '../../../proxy/http/upstream/response/response-head.ts'
import { ResponseParser } from '../../../proxy/http/upstream/response/response-parser.ts'

/** A response's head: its status, and its end-to-end fields as name, value, name, value… with names in lower case. */
export type HeadRead = { readonly status: number; readonly fields: readonly string[] }

/** How a parser has read the bytes of one response. */
export type Reading = {
  /** 1xx responses, except 101. */
  readonly interim: HeadRead[]
  head: HeadRead | undefined
  /** Latin-1 text, one character a byte. */
  body: string
  /**
   * The index of the piece that completed the response; the number of pieces if the end of the connection did; undefined if the response is
   * incomplete. A 101 is complete with its head.
   */
  endedIn: number | undefined
  /** Why the response was refused before it was complete. */
  refused: string | undefined
}

function nothingRead(): Reading {
  return { interim: [], head: undefined, body: '', endedIn: undefined, refused: undefined }
}

/**
 * Reads a response with the gateway's own parser.
 *
 * @param closes whether the connection is closed gracefully after the last piece
 */
export function readHere(pieces: readonly Buffer[], method: string, closes: boolean): Reading {
  const reading = nothingRead()
  const parser = new ResponseParser()
  let fed = 0
  parser.expect(method, {
    onInterimResponse: ({ status, fields }) => reading.interim.push({ status, fields }),
    onHead: ({ status, fields }) => (reading.head = { status, fields }),
    onBody: (chunk) => (reading.body += chunk.toString('latin1')),
    onEnd: () => (reading.endedIn = fed),
    onTrailers: () => undefined,
    onUpgrade: ({ status, fields }) => {
      reading.head = { status, fields }
      reading.endedIn = fed
    },
  })
  try {
    for (const piece of pieces) {
      parser.execute(piece)
      if (reading.endedIn !== undefined) return reading
      fed++
    }
    if (closes) parser.finish()
  } catch (error) {
    if (!(error instanceof ResponseSyntaxError)) throw error
    // Bytes after the response are refused too, but do not matter here.
    if (reading.endedIn === undefined) reading.refused = error.message
  }
  return reading
}

/**
 * Reads a response with the client of `node:http`, whose parser is llhttp, in its strictest mode. `refused` is llhttp's error code.
 */
export async function readWithNode(
  pieces: readonly Buffer[],
  method: string,
  closes: boolean,
): Promise<Reading> {
  const reading = nothingRead()
  let fed = 0
  let response: IncomingMessage | undefined
  const socket = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, written) => written(),
  })
  const sent = request({
    method,
    createConnection: () => socket,
    insecureHTTPParser: false,
    // Large, as both parsers bound sizes, but differently.
    maxHeaderSize: 1024 * 1024,
  })
  sent.on('information', ({ statusCode, rawHeaders }) =>
    reading.interim.push({ status: statusCode, fields: endToEnd(rawHeaders) }),
  )
  sent.on('response', (incoming) => {
    response = incoming
    reading.head = headOf(incoming)
    incoming.on('error', () => undefined)
  })
  sent.on('upgrade', (incoming) => {
    // The upgrade may belong to a second response in the same piece.
    if (response) return
    reading.head = headOf(incoming)
    reading.endedIn = fed
  })
  sent.on('error', ({ code = '' }: NodeJS.ErrnoException) => {
    if (code.startsWith('HPE_') && !response?.complete) reading.refused = code
  })
  socket.on('error', () => undefined)
  sent.end()
  await once(sent, 'socket')

  // Emitted, because a stream may join pieces that are pushed into it. The client reads each piece before `emit` returns.
  const feed = (event: 'data' | 'end', piece?: Buffer): boolean => {
    socket.emit(event, piece)
    for (;;) {
      const content = response?.read() as Buffer | null | undefined
      if (!content) break
      reading.body += content.toString('latin1')
    }
    if (response?.complete) reading.endedIn = fed
    return reading.endedIn === undefined && reading.refused === undefined
  }
  let goesOn = true
  for (const piece of pieces) {
    goesOn = feed('data', piece)
    if (!goesOn) break
    fed++
  }
  if (goesOn && closes) feed('end')
  sent.destroy()
  socket.destroy()
  return reading
}

function headOf({ statusCode, rawHeaders }: IncomingMessage): HeadRead {
  return { status: statusCode ?? 0, fields: endToEnd(rawHeaders) }
}

/** The fields of RFC 9110 section 7.6.1, and others that no proxy passes on. */
const ofOneHop = new Set([
  'close',
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function endToEnd(rawHeaders: readonly string[]): string[] {
  const fields = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] ?? ''] as const] : [],
  )
  const named = new Set(
    fields
      .filter(([name]) => name === 'connection')
      .flatMap(([, value]) => value.split(','))
      .map((option) => option.trim().toLowerCase()),
  )
  // A length frames the content, no matter what Connection names.
  named.delete('content-length')
  return fields.filter(([name]) => !ofOneHop.has(name) && !named.has(name)).flat()
}

/**
 * Describes where a response read by the gateway differs for a client or proxy that parses as Node does; undefined if it does not. Node may
 * read a response that the gateway refuses; the part that the gateway has passed on by then must match Node's reading.
 */
export function differenceBetween(
  here: Reading,
  node: Reading,
): 'interim' | 'head' | 'body' | 'end' | undefined {
  const isRefusedHere = here.refused !== undefined
  const isSame = (one: HeadRead | undefined, other: HeadRead | undefined): boolean =>
    one?.status === other?.status && one?.fields.join('\n') === other?.fields.join('\n')

  if (isRefusedHere ? here.interim.length > node.interim.length : here.interim.length !== node.interim.length)
    return 'interim'
  if (!here.interim.every((head, i) => isSame(head, node.interim[i]))) return 'interim'
  if ((here.head || !isRefusedHere) && !isSame(here.head, node.head)) return 'head'
  if (isRefusedHere ? !node.body.startsWith(here.body) : node.body !== here.body) return 'body'
  if (!isRefusedHere && here.endedIn !== node.endedIn) return 'end'
  return undefined
}
