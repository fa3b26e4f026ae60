import { once } from 'node:events'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import { duplexPair, type Duplex } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { UpstreamChannel, UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import { UpstreamSession } from '../../../../proxy/http/upstream/http2/session.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

const timeouts = { firstByteMs: 5_000, idleMs: 5_000 }

/**
 * A request on a session whose connection is a JavaScript stream. Input is read within a callback, so Node queues the events for heads and
 * passes on content immediately. A socket does that only occasionally, on a busy machine.
 *
 * @returns the events of the response that the exchange receives
 */
async function respondWithin(answer: (stream: ServerHttp2Stream) => void): Promise<readonly string[]> {
  const [near, far] = duplexPair()
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    answer(stream)
  })
  server.emit('connection', far)
  const heard: string[] = []
  sessionOn(near, exchangeThatHears(heard), () => performance.now())
  await eventually('the response has ended', () => expect(heard.at(-1)).toMatch(/^(end|failure)/))
  return heard
}

/** A request without a body, which records the events of its response. */
function exchangeThatHears(heard: string[]): UpstreamExchange {
  return {
    method: 'GET',
    client: '192.0.2.1',
    isCancelled: false,
    headBytes: 0,
    isBodyPending: false,
    upgrades: false,
    isRetryable: false,
    start: sendWithoutBody,
    onInterimResponse: ({ status }) => heard.push(`information ${status}`),
    onHead: ({ status }) => heard.push(`head ${status}`),
    onBody: (chunk) => heard.push(`body ${chunk.toString()}`),
    onReadEnd: () => undefined,
    onTrailers: (fields) => heard.push(`trailers ${fields.join(' ')}`),
    onEnd: () => heard.push('end'),
    onUpgrade: () => heard.push('upgrade'),
    onFailure: ({ kind }) => heard.push(`failure ${kind}`),
  }
}

/** A session that begins this request. */
function sessionOn(near: Duplex, exchange: UpstreamExchange, now: () => number): UpstreamSession {
  const owner = {
    onReady: (ready: UpstreamSession) => ready.begin(exchange),
    mayRetire: () => true,
    onRoom: () => undefined,
    onGoaway: () => undefined,
    onSessionClosed: () => undefined,
  }
  const options = { ...timeouts, scheme: 'http', retireAtMs: Infinity, maxRequests: 0 } as const
  const session = new UpstreamSession(near, owner, { ...options, now })
  onTestFinished(() => session.destroy('the test is over'))
  return session
}

function sendWithoutBody(channel: UpstreamChannel): void {
  channel.writeHead(upstreamRequest({ acceptsTrailers: true }))
}

test('content that comes in one piece with the head follows it', async () => {
  const heard = await respondWithin((stream) => {
    stream.respond({ ':status': 200 })
    stream.end('content')
  })
  expect(heard).toEqual(['head 200', 'body content', 'end'])
})

test('interim responses and trailers in one piece with the head follow it', async () => {
  const heard = await respondWithin((stream) => {
    stream.additionalHeaders({ ':status': 103 })
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-checksum': 'abc' }))
    stream.end('content')
  })
  expect(heard.slice(0, 2)).toEqual(['information 103', 'head 200'])
  expect(heard.slice(2, -1).toSorted()).toEqual(['body content', 'trailers x-checksum abc'])
  expect(heard.at(-1)).toBe('end')
})

test('a response that is a head alone ends', async () => {
  const heard = await respondWithin((stream) => stream.respond({ ':status': 204 }, { endStream: true }))
  expect(heard).toEqual(['head 204', 'end'])
})

test('a stream that is reset before the head fails', async () => {
  expect(await respondWithin((stream) => stream.close(2))).toEqual(['failure reset'])
})

test.each([
  ['with an error', new Error('reset')],
  ['without', undefined],
])('a stream that is reset after a part of the content fails, %s', async (_how, error) => {
  const heard = await respondWithin((stream) => {
    stream.respond({ ':status': 200 })
    stream.write('part', () => stream.destroy(error))
  })
  expect(heard).toEqual(['head 200', 'body part', 'failure reset'])
})

describe('a request that is cancelled before its response', () => {
  test('a cancelled request is not reset if the backend answers within a second of its beginning', async () => {
    const { cancel, session, taken } = beginCancellable()
    const stream = await taken
    cancel()
    session.expire(999, false)
    // All that was written before has arrived then.
    await new Promise<unknown>((resolve) => session.session.ping((error) => resolve(error)))
    stream.respond({ ':status': 200 })
    stream.end('content')
    expect(await resetCode(stream)).toBe(0)
    expect(session.open).toBe(0)
  })

  test('a cancelled request is reset if the response is long', async () => {
    const { cancel, taken } = beginCancellable()
    const stream = await taken
    cancel()
    stream.respond({ ':status': 200 })
    stream.end('x'.repeat(1_000_000))
    expect(await resetCode(stream)).toBe(8)
  })

  test('a cancelled request is reset a second after its beginning', async () => {
    const { cancel, session, taken } = beginCancellable()
    const stream = await taken
    cancel()
    session.expire(1_000, false)
    expect(await resetCode(stream)).toBe(8)
  })

  test('a cancelled request is reset at once if the backend has had it for a second', async () => {
    const { cancel, setTime, taken } = beginCancellable()
    const stream = await taken
    setTime(1_000)
    cancel()
    expect(await resetCode(stream)).toBe(8)
  })
})

/** Netty closes a connection with 200 resets in half a minute, with the requests of other clients. */
test('a session takes no further requests after a hundred that were answered before their body was sent', async () => {
  const [near, far] = duplexPair()
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined)
    stream.respond({ ':status': 413 })
    stream.end('too much')
  })
  server.emit('connection', far)
  const heard: string[] = []
  const start = (channel: UpstreamChannel): void =>
    void channel.writeHead(upstreamRequest({ method: 'POST', hasBody: true }))
  const exchange = { ...exchangeThatHears(heard), method: 'POST', start }
  const session = sessionOn(near, exchange, () => 0)
  const ended = (): number => heard.filter((event) => event === 'end').length
  for (let i = 1; i < 100; i++) {
    await eventually(`request ${i} has ended`, () => expect(ended()).toBe(i))
    expect(session.isRetired).toBe(false)
    session.begin(exchange)
  }
  await eventually('the last request has ended', () => expect(ended()).toBe(100))
  expect(session.isRetired).toBe(true)
})

/** A request, begun at 0, on a session whose clock stands still. `taken`: its stream at the backend. */
function beginCancellable() {
  const [near, far] = duplexPair()
  const server = createServer()
  const taken = new Promise<ServerHttp2Stream>((resolve) => void server.on('stream', resolve))
  server.emit('connection', far)
  let nowMs = 0
  let cancel = (): void => undefined
  const start = (channel: UpstreamChannel): void => {
    cancel = () => channel.abort('the client went away')
    sendWithoutBody(channel)
  }
  const exchange = { ...exchangeThatHears([]), start }
  const session = sessionOn(near, exchange, () => nowMs)
  const setTime = (ms: number): void => void (nowMs = ms)
  return { cancel: () => cancel(), session, setTime, taken }
}

/** The code with which the gateway has reset a stream of the backend; 0 if it has ended without. */
async function resetCode(stream: ServerHttp2Stream): Promise<number | undefined> {
  stream.on('error', () => undefined)
  if (!stream.closed) await once(stream, 'close')
  return stream.rstCode
}
