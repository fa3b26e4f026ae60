import { createServer, type ServerHttp2Stream } from 'node:http2'
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { UpstreamChannel, UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import type { UpstreamFailure } from '../../../../proxy/http/upstream/failure.ts'
import { UpstreamSession } from '../../../../proxy/http/upstream/http2/session.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

/** The frame sizes of the paused response and of the other response. Their frames arrive in the same reads. */
const FRAME_BYTES = [1024, 15 * 1024] as const
const FRAMES = 300

/** A request whose response is paused at its head if `pauses` is set. */
class Exchange implements UpstreamExchange {
  readonly method = 'GET'
  readonly client = '192.0.2.1'
  readonly isCancelled = false
  readonly headBytes = 0
  readonly isBodyPending = false
  readonly upgrades = false
  readonly isRetryable = false
  readonly pieces: Buffer[] = []
  readonly #pauses: boolean
  channel: UpstreamChannel | undefined
  outcome: string | undefined

  constructor(pauses: boolean) {
    this.#pauses = pauses
  }

  get bytes(): number {
    return this.pieces.reduce((sum, { length }) => sum + length, 0)
  }

  start(channel: UpstreamChannel): void {
    this.channel = channel
    channel.writeHead(upstreamRequest({}))
  }

  onBody(chunk: Buffer): void {
    this.pieces.push(chunk)
    if (this.#pauses && this.pieces.length === 1) this.channel?.pause()
  }

  onInterimResponse(): void {}
  onHead(): void {}
  onReadEnd(): void {}
  onTrailers(): void {}
  onEnd(): void {
    this.outcome = 'end'
  }

  onUpgrade(): void {}
  onFailure({ kind }: UpstreamFailure): void {
    this.outcome = kind
  }
}

/** Sends requests on a session to a backend that has begun to answer them. `kill` closes the backend's end without GOAWAY. */
async function begin(
  exchanges: readonly Exchange[],
): Promise<{ readonly streams: readonly ServerHttp2Stream[]; readonly kill: () => void }> {
  const streams: ServerHttp2Stream[] = []
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    stream.respond({ ':status': 200 })
    streams.push(stream)
  })
  let kill = (): void => undefined
  const listener = createTcpServer((socket) => {
    kill = () => void socket.destroy()
    server.emit('connection', socket)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const socket = connect((listener.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  const session = new UpstreamSession(
    socket,
    {
      onReady: (ready) => exchanges.forEach((exchange) => ready.begin(exchange)),
      mayRetire: () => false,
      onRoom: () => undefined,
      onGoaway: () => undefined,
      onSessionClosed: () => undefined,
    },
    {
      firstByteMs: 5_000,
      idleMs: 5_000,
      scheme: 'http',
      retireAtMs: Infinity,
      maxRequests: 0,
      now: () => performance.now(),
    },
  )
  onTestFinished(() => {
    session.destroy('the test is over')
    server.close()
    listener.close()
  })
  await eventually('all have begun', () => expect(streams).toHaveLength(exchanges.length))
  return { streams, kill: () => kill() }
}

test('a paused response keeps its own bytes, and not those of others that came in the same read', async () => {
  const paused = new Exchange(true)
  const read = new Exchange(false)
  const { streams } = await begin([paused, read])
  for (let i = 0; i < FRAMES; i++) {
    for (const [at, stream] of streams.entries()) stream.write(Buffer.alloc(FRAME_BYTES[at] ?? 0, i))
    await sleep(1)
  }
  await eventually('the other one has all', () => expect(read.bytes).toBe(FRAMES * FRAME_BYTES[1]))
  const waiting = paused.channel?.waitingBytes ?? 0
  expect(waiting).toBeGreaterThan(64 * 1024)
  expect(waiting).toBeLessThanOrEqual(paused.channel?.maxWaitingBytes ?? 0)
  const taken = paused.pieces.length
  paused.channel?.resume()
  await eventually('all of it', () => expect(paused.bytes).toBe(FRAMES * FRAME_BYTES[0]))
  const waited: Buffer[] = []
  for (let at = taken, bytes = 0; bytes < waiting; at++) {
    const piece = paused.pieces[at] ?? Buffer.alloc(0)
    waited.push(piece)
    bytes += piece.length
  }
  const kept = new Set(waited.map(({ buffer }) => buffer))
  const keptBytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0)
  expect(keptBytes).toBeLessThan(2 * waiting)
  expect(paused.channel?.waitingBytes).toBe(0)
})

test.each([
  ['a whole response', true, 'end'],
  ['a part of a response', false, 'reset'],
])('%s that waits is passed on when the backend closes the connection', async (_, isWhole, outcome) => {
  const paused = new Exchange(true)
  const { streams, kill } = await begin([paused])
  const [stream] = streams
  const session = stream?.session
  stream?.write('first')
  await eventually('it is paused', () => expect(paused.bytes).toBe(5))
  if (isWhole) stream?.end(Buffer.alloc(100_000))
  else stream?.write(Buffer.alloc(100_000))
  await eventually('the rest waits', () => expect(paused.channel?.waitingBytes).toBe(100_000))
  if (isWhole) await eventually('all is sent', () => expect(stream?.writableFinished).toBe(true))
  // The answer shows that the frame with the end of the response has arrived, too.
  await new Promise((resolve) => session?.ping(resolve))
  kill()
  await eventually('it has ended', () => expect(paused.outcome).toBe(outcome))
  expect(paused.bytes).toBe(100_005)
})
