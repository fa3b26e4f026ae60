import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Http2Connection } from '../../proxy/http/http2/connection.ts'
import type { Http2Request } from '../../proxy/http/http2/request.ts'
import type { Http2Response } from '../../proxy/http/http2/response.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The HTTP/2 server against Node's client (nghttp2): each must read exactly the messages of the other, for random requests, responses,
 * pauses, windows and tables, no matter how the bytes are cut on the way.
 */

type Exchange = {
  readonly headers: readonly (readonly [string, string])[]
  /** Sizes of the pieces; undefined for no body. */
  readonly body: readonly number[] | undefined
  readonly trailers: readonly (readonly [string, string])[]
  readonly status: number
  readonly answerHeaders: readonly (readonly [string, string])[]
  readonly answer: readonly number[]
  readonly answerTrailers: readonly (readonly [string, string])[]
  /** Whether the server reads the body only later. */
  readonly lateReader: boolean
  /** Whether the head is sent before there is a body. */
  readonly flushes: boolean
}

type Seen = { headers: string[]; body: Buffer; trailers: string[] }

const exchanges = new Map<string, Exchange>()
const seen = new Map<string, Seen>()
const failures: unknown[] = []
let server: Server
let relay: Server
/** Sizes of the reads into which a relay cuts the bytes. */
let cuts: readonly number[] = []

function bodyOf(sizes: readonly number[] | undefined): Buffer {
  return Buffer.concat((sizes ?? []).map((size, i) => Buffer.alloc(size, `${i}-`)))
}

function pairs(fields: readonly string[]): string[] {
  return fields.filter((_, i) => i % 2 === 0).map((name, i) => `${name}: ${fields[2 * i + 1] ?? ''}`)
}

function answer(request: Http2Request, response: Http2Response): void {
  const exchange = exchanges.get(request.url)
  if (!exchange) throw new Error(`unknown request: ${request.url}`)
  const pieces: Buffer[] = []
  const read = (): void => void request.on('data', (piece: Buffer) => pieces.push(piece))
  if (exchange.lateReader) setTimeout(read, 2)
  else read()
  request.on('end', () => {
    const headers = pairs(request.rawHeaders).filter((line) => line.startsWith('x-'))
    seen.set(request.url, { headers, body: Buffer.concat(pieces), trailers: pairs(request.rawTrailers) })
    response.writeHead(exchange.status, exchange.answerHeaders.flat())
    if (exchange.flushes) response.flushHead()
    const send = (i: number): void => {
      const size = exchange.answer[i]
      if (size === undefined) {
        response.addTrailers(exchange.answerTrailers.flat())
        response.end()
      } else if (response.write(Buffer.alloc(size, `${i}-`))) send(i + 1)
      else response.onDrain = () => send(i + 1)
    }
    send(0)
  })
}

beforeAll(async () => {
  server = createServer({ noDelay: true }, (socket) => {
    new Http2Connection(socket, {
      maxHeaderBytes: 64 * 1024,
      maxStreams: 100,
      sendMs: 10_000,
      now: () => performance.now(),

      isPressed: () => false,
      clientOf: () => '',
      serve: answer,
      onHeadersTooLarge: () => failures.push('too large'),
      onMalformed: () => failures.push('malformed'),
      onException: (error) => failures.push(error),
    })
  })
  relay = createServer({ noDelay: true }, (client) => {
    const backend = connect({ port: (server.address() as AddressInfo).port, noDelay: true })
    passOn(client, backend)
    passOn(backend, client)
  })
  for (const each of [server, relay]) {
    each.listen(0, '127.0.0.1')
    await once(each, 'listening')
  }
})

afterAll(() => {
  server.close()
  relay.close()
})

function passOn(from: Socket, to: Socket): void {
  let i = 0
  from.on('error', () => undefined)
  from.on('close', () => to.destroy())
  from.on('data', (chunk: Buffer) => {
    if (cuts.length === 0) return void to.write(chunk)
    for (let at = 0; at < chunk.length;) {
      const size = cuts[i++ % cuts.length] ?? 1
      const piece = chunk.subarray(at, at + size)
      to.write(piece)
      at += size
    }
  })
}

function ask(
  session: ClientHttp2Session,
  path: string,
  exchange: Exchange,
): Promise<Seen & { status: number }> {
  return new Promise((resolve, reject) => {
    const { body, headers, trailers } = exchange
    const stream = session.request(
      { ':method': 'POST', ':path': path, ...Object.fromEntries(headers) },
      { endStream: body === undefined && trailers.length === 0, waitForTrailers: trailers.length > 0 },
    )
    stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(trailers)))
    for (const [i, size] of (body ?? []).entries()) stream.write(Buffer.alloc(size, `${i}-`))
    if (body !== undefined || trailers.length > 0) stream.end()
    const pieces: Buffer[] = []
    let status = 0
    let answered: string[] = []
    let ended: string[] = []
    stream.on('response', (fields, _flags, raw: string[]) => {
      status = Number(fields[':status'])
      answered = pairs(raw).filter((line) => line.startsWith('x-'))
    })
    stream.on('trailers', (_fields, _flags, raw: string[]) => (ended = pairs(raw)))
    stream.on('data', (piece: Buffer) => pieces.push(piece))
    stream.on('error', reject)
    stream.setTimeout(20_000, () => reject(new Error('nothing comes any more')))
    stream.on('close', () => {
      if (stream.rstCode !== 0) reject(new Error(`reset with ${stream.rstCode}`))
      else resolve({ status, headers: answered, body: Buffer.concat(pieces), trailers: ended })
    })
  })
}

const value = fc.oneof(
  fc.constantFrom('', 'a', 'no-cache', 'x'.repeat(300)),
  fc
    .string({ maxLength: 40, unit: fc.constantFrom(...'abcXYZ09 ,;="/%~{}|<>\xe9\xff'.split('')) })
    .map((text) => text.trim()),
)
const fields = fc.uniqueArray(
  fc.tuple(
    fc.integer({ min: 0, max: 30 }).map((i) => `x-${i}`),
    value,
  ),
  { selector: ([name]) => name, maxLength: 12 },
)
const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 40_000 })), {
  maxLength: 6,
})

const anyExchange: fc.Arbitrary<Exchange> = fc.record({
  headers: fields,
  body: fc.option(sizes, { nil: undefined }),
  trailers: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fields),
  status: fc.constantFrom(200, 201, 404, 429, 503),
  answerHeaders: fields,
  answer: sizes,
  answerTrailers: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fields),
  lateReader: fc.boolean(),
  flushes: fc.boolean(),
})

const settings = fc.record(
  {
    headerTableSize: fc.constantFrom(0, 100, 4096, 65_536),
    initialWindowSize: fc.constantFrom(1000, 65_535, 1_000_000),
    maxFrameSize: fc.constantFrom(16_384, 1_000_000),
  },
  { requiredKeys: [] },
)

let number = 0

test('the server reads the requests of Node’s client, and that client reads its responses', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyExchange, { minLength: 1, maxLength: 12 }),
      settings,
      fc.oneof(fc.constant([]), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 })),
      async (batch, clientSettings, cutSizes) => {
        // Most of the input comes in larger pieces, to save time.
        cuts = cutSizes.flatMap((size) => [size, 10 + size, 100 * size])
        const { port } = relay.address() as AddressInfo
        const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: clientSettings })
        const paths = batch.map((exchange) => {
          const path = `/${number++}`
          exchanges.set(path, exchange)
          return path
        })
        try {
          const replies = await Promise.all(
            batch.map((exchange, i) => ask(session, paths[i] ?? '', exchange)),
          )
          for (const [i, reply] of replies.entries()) {
            const exchange = batch[i]
            const arrived = seen.get(paths[i] ?? '')
            if (!exchange || !arrived) throw new Error('nothing was seen')
            expect(arrived.headers).toEqual(exchange.headers.map(([name, text]) => `${name}: ${text}`))
            expect(arrived.body.equals(bodyOf(exchange.body))).toBe(true)
            expect(arrived.trailers).toEqual(exchange.trailers.map(([name, text]) => `${name}: ${text}`))
            expect(reply.status).toBe(exchange.status)
            expect(reply.headers).toEqual(exchange.answerHeaders.map(([name, text]) => `${name}: ${text}`))
            expect(reply.body.equals(bodyOf(exchange.answer))).toBe(true)
            expect(reply.trailers).toEqual(exchange.answerTrailers.map(([name, text]) => `${name}: ${text}`))
          }
          expect(failures).toEqual([])
        } finally {
          session.destroy()
          exchanges.clear()
          seen.clear()
        }
      },
    ),
    { numRuns: runs(1000) },
  )
}, 300_000)
