import { once } from 'node:events'
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { connect, type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { headerListOf } from '../../../../proxy/http/message/header-list.ts'
import type { UpstreamChannel, UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import { Http2Pool, type Http2PoolOptions } from '../../../../proxy/http/upstream/http2/pool.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'
import { eventually } from '../../../support/wait/eventually.ts'

const LARGE_BYTES = 9 * 1024

/** A request. `outcome`: `end`, or the kind of its failure. */
class Exchange implements UpstreamExchange {
  readonly method = 'GET'
  readonly client: string
  readonly headBytes: number
  readonly isBodyPending = false
  readonly upgrades = false
  readonly isRetryable = false
  isCancelled = false
  isAnswered = false
  outcome: string | undefined
  readonly #target: string
  readonly #body: Buffer | undefined
  #channel: UpstreamChannel | undefined

  /** @param body the part of the body that arrives; undefined if the request has none */
  constructor(client: string, target = '/', headBytes = 0, body?: Buffer) {
    this.client = client
    this.headBytes = headBytes
    this.#target = target
    this.#body = body
  }

  start(channel: UpstreamChannel): void {
    this.#channel = channel
    if (this.#body) {
      channel.writeHead(upstreamRequest({ method: 'POST', hasBody: true }))
      channel.write(this.#body)
      return
    }
    const fields = headerListOf([
      'host',
      'a',
      ...(this.headBytes > 0 ? ['x-large', 'x'.repeat(this.headBytes)] : []),
    ])
    channel.writeHead(upstreamRequest({ target: this.#target, fields }))
  }

  cancel(): void {
    if (this.outcome !== undefined) return
    this.isCancelled = true
    this.outcome = 'cancelled'
    this.#channel?.abort('the client went away')
  }

  onInterimResponse(): void {}
  onHead(): void {
    this.isAnswered = true
  }

  onBody(): void {}
  onReadEnd(): void {}
  onTrailers(): void {}
  onUpgrade(): void {}

  onEnd(): void {
    this.#channel = undefined
    this.outcome ??= 'end'
  }

  onFailure({ kind }: { readonly kind: string }): void {
    this.#channel = undefined
    this.outcome ??= kind
  }
}

type Backend = { readonly port: number; readonly goAway: () => void }

async function startBackend(
  answer: (stream: ServerHttp2Stream, path: string) => void,
  settings: { readonly maxHeaderListSize?: number; readonly maxConcurrentStreams?: number } = {},
): Promise<Backend> {
  const server = createServer({ settings })
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => undefined)
    session.on('close', () => sessions.delete(session))
  })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => undefined)
    answer(stream, headers[':path'] ?? '')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  const goAway = (): void => {
    for (const session of sessions) if (!session.destroyed) session.goaway()
  }
  return { port: (server.address() as AddressInfo).port, goAway }
}

function answerAtOnce(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200 })
  stream.end('body')
}

function poolFor({ port }: Backend, given: Partial<Http2PoolOptions> = {}): Http2Pool {
  const pool = new Http2Pool({
    scheme: 'http',
    open: (ready) => connect(port, '127.0.0.1', ready),
    connectMs: 60_000,
    firstByteMs: 60_000,
    idleMs: 60_000,
    queueMs: 60_000,
    maxConnections: 2,
    maxStreams: 100,
    maxQueued: 10_000,
    maxAgeMs: 600_000,
    maxRequests: 0,
    random: () => 0,
    now: () => performance.now(),
    ...given,
  })
  onTestFinished(() => pool.destroy())
  return pool
}

test('any number of waiting requests may fail as soon as they have a connection', async () => {
  const pool = poolFor(await startBackend(answerAtOnce, { maxHeaderListSize: 4096 }))
  const failing = Array.from({ length: 8_000 }, () => new Exchange('192.0.2.1', '/', 4096))
  for (const exchange of failing) pool.send(exchange)
  const last = new Exchange('192.0.2.1')
  pool.send(last)
  await eventually('the last one is answered', () => expect(last.outcome).toBe('end'))
  expect(new Set(failing.map(({ outcome }) => outcome))).toEqual(new Set(['protocol']))
})

test('cancelled uploads that the backend does not read keep little memory, and the latest are not reset at once', async () => {
  let begun = 0
  let resets = 0
  const backend = await startBackend((stream) => {
    begun++
    stream.on('close', () => resets++)
  })
  // Time does not pass.
  const pool = poolFor(backend, { now: () => 0 })
  const uploads = Array.from(
    { length: 40 },
    () => new Exchange('192.0.2.1', '/', 0, Buffer.alloc(128 * 1024)),
  )
  for (const upload of uploads) pool.send(upload)
  await eventually('all have begun', () => expect(begun).toBe(uploads.length))
  for (const upload of uploads) upload.cancel()
  await eventually('the oldest are reset', () => expect(resets).toBeGreaterThanOrEqual(uploads.length - 8))
  expect(pool.busy).toBe(8)
  expect(resets).toBe(uploads.length - 8)
})

test('a connection for a request with a large head leaves its place as soon as the request has ended', async () => {
  // Without the sweep.
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const pool = poolFor(await startBackend(answerAtOnce), { maxConnections: 1, maxStreams: 0 })
  for (const headBytes of [LARGE_BYTES, 0, LARGE_BYTES, LARGE_BYTES, 0]) {
    const exchange = new Exchange('192.0.2.1', '/', headBytes)
    pool.send(exchange)
    await eventually('it is answered', () => expect(exchange.outcome).toBe('end'))
  }
})

test('a request that waits for a connection that the backend retires gets another one at once', async () => {
  // Without the sweep.
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const slow: ServerHttp2Stream[] = []
  const backend = await startBackend(
    (stream, to) => {
      if (to === '/slow') slow.push(stream)
      else answerAtOnce(stream)
    },
    { maxConcurrentStreams: 1 },
  )
  const pool = poolFor(backend, { maxConnections: 1 })
  pool.send(new Exchange('192.0.2.1', '/slow'))
  await eventually('the only stream is taken', () => expect(slow.length).toBe(1))
  const waiting = new Exchange('192.0.2.2')
  pool.send(waiting)
  expect(pool.queued).toBe(1)
  backend.goAway()
  await eventually('it is answered', () => expect(waiting.outcome).toBe('end'))
})

test('a request with a large head is served while others hold all streams', async () => {
  const slow: ServerHttp2Stream[] = []
  const backend = await startBackend(
    (stream, to) => {
      if (to === '/slow') slow.push(stream)
      else answerAtOnce(stream)
    },
    { maxConcurrentStreams: 2 },
  )
  const pool = poolFor(backend, { maxConnections: 1, maxStreams: 1 })
  for (const address of ['192.0.2.1', '192.0.2.2']) pool.send(new Exchange(address, '/slow'))
  await eventually('the streams are taken', () => expect(slow.length).toBe(2))
  for (const address of ['192.0.2.1', '192.0.2.3']) {
    const large = new Exchange(address, '/', LARGE_BYTES)
    pool.send(large)
    await eventually('it is answered', () => expect(large.outcome).toBe('end'))
  }
  const waiting = new Exchange('192.0.2.4')
  pool.send(waiting)
  expect(pool.queued).toBe(1)
  for (const stream of slow) answerAtOnce(stream)
  await eventually('the others have their streams back', () => expect(waiting.outcome).toBe('end'))
})

const client = fc.constantFrom('192.0.2.1', '192.0.2.2', '192.0.2.3')
const path = fc.constantFrom('/', '/', '/slow')
const sending = fc.record({ kind: fc.constant('send' as const), client, path, isLarge: fc.boolean() })
const event = fc.oneof(
  { weight: 6, arbitrary: sending },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('cancel' as const), at: fc.integer({ min: 0, max: 30 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('goaway' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('answer slow ones' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.integer({ min: 0, max: 10 }) }),
  },
)
const drawn = fc.record({
  events: fc.array(event, { minLength: 5, maxLength: 60 }),
  maxConnections: fc.integer({ min: 1, max: 3 }),
  maxStreams: fc.integer({ min: 0, max: 4 }),
  maxConcurrentStreams: fc.integer({ min: 1, max: 4 }),
})

test('every request that a backend answers in the end is answered, in whatever order requests and resets come', () =>
  fc.assert(
    fc.asyncProperty(drawn, async ({ events, maxConnections, maxStreams, maxConcurrentStreams }) => {
      const slow = new Set<ServerHttp2Stream>()
      let isOver = false
      const backend = await startBackend(
        (stream, target) => {
          if (target !== '/slow' || isOver) return answerAtOnce(stream)
          slow.add(stream)
          stream.on('close', () => slow.delete(stream))
        },
        { maxConcurrentStreams },
      )
      // Seconds last 20 ms, so that cancelled requests are reset.
      const now = (): number => performance.now() * 50
      const limits = { firstByteMs: 1e9, idleMs: 1e9, queueMs: 1e9, maxAgeMs: 1e9 }
      const pool = poolFor(backend, { maxConnections, maxStreams, now, ...limits })
      const exchanges: Exchange[] = []
      const answerSlow = (): void => {
        for (const stream of slow) answerAtOnce(stream)
        slow.clear()
      }
      for (const each of events) {
        if (each.kind === 'send') {
          const sent = new Exchange(each.client, each.path, each.isLarge ? LARGE_BYTES : 0)
          exchanges.push(sent)
          pool.send(sent)
        } else if (each.kind === 'cancel') exchanges[each.at]?.cancel()
        else if (each.kind === 'goaway') backend.goAway()
        else if (each.kind === 'answer slow ones') answerSlow()
        else await sleep(each.ms)
        expect(pool.size + pool.streams).toBeLessThanOrEqual(maxConnections + Math.max(1, maxStreams))
      }
      isOver = true
      await eventually('all have ended', () => {
        answerSlow()
        // A request on its way when the backend sends GOAWAY is refused. The gateway would send it again.
        for (const { isCancelled, outcome } of exchanges)
          expect(isCancelled ? ['cancelled'] : ['end', 'reset']).toContain(outcome)
        expect(pool.busy).toBe(0)
      })
    }),
    { numRuns: 50 },
  ))

test('requests with large heads do not keep a connection in use after a hundred resets', async () => {
  const backend = await startBackend((stream, path) => {
    if (path !== '/large') stream.respond({ ':status': 200 })
  })
  const pool = poolFor(backend)
  pool.send(new Exchange('192.0.2.1', '/large', LARGE_BYTES))
  await eventually('it has a connection', () => expect([pool.size, pool.streams]).toEqual([0, 1]))
  for (let resets = 0; resets < 100; resets++) {
    const exchange = new Exchange('192.0.2.2')
    pool.send(exchange)
    await eventually('it is answered', () => expect(exchange.isAnswered).toBe(true))
    exchange.cancel()
  }
  await eventually('the connection is not used any more', () => expect(pool.size).toBe(0))
})
