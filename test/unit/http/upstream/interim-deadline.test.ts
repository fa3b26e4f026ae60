import { once } from 'node:events'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ConnectionLife } from '../../../../proxy/http/upstream/keep-alive/connection-life.ts'
import { UpstreamConnection } from '../../../../proxy/http/upstream/connection.ts'
import type { UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import { UpstreamSession } from '../../../../proxy/http/upstream/http2/session.ts'
import { startRawBackend } from '../../../support/http/backend.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

// While a backend sends interim responses, it is working: each of them may take as long to arrive as a response may, but no longer.

const firstByteMs = 1_000
const timeouts = { firstByteMs, idleMs: 1_000 }

/** A request in flight, and a clock that only the test advances. */
type Waiting = {
  readonly heard: readonly string[]
  /** Makes the backend send an interim response. */
  sendInterimResponse(): void
  /** Advances the clock and sweeps. */
  pass(ms: number): void
  markLongResponse?(): boolean
}

function listeningExchange() {
  const heard: string[] = []
  const exchange: UpstreamExchange = {
    ...{
      method: 'GET',
      client: 'a',
      isCancelled: false,
      headBytes: 0,
      isBodyPending: false,
      upgrades: false,
      isRetryable: true,
    },
    start(channel) {
      channel.writeHead(upstreamRequest())
    },
    onInterimResponse: ({ status }) => heard.push(String(status)),
    onHead: ({ status }) => heard.push(String(status)),
    onBody: () => undefined,
    onReadEnd: () => undefined,
    onTrailers: () => undefined,
    onEnd: () => heard.push('end'),
    onUpgrade: () => undefined,
    onFailure: ({ kind }) => heard.push(kind),
  }
  return { heard, exchange }
}

async function overHttp1(): Promise<Waiting> {
  let nowMs = 0
  let side: Socket | undefined
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => (side = socket))
    socket.on('error', () => undefined)
  })
  const socket = connect(Number(new URL(backend.url).port), '127.0.0.1')
  await once(socket, 'connect')
  const nothing = (): void => undefined
  const owner = {
    onRequestSent: nothing,
    onAnswer: nothing,
    onClosedIdle: nothing,
    onFree: nothing,
    onClosed: nothing,
    onPlaceFree: nothing,
  }
  const life = new ConnectionLife(0, Number.POSITIVE_INFINITY)
  const connection = new UpstreamConnection(socket, owner, timeouts, life, () => nowMs)
  onTestFinished(() => connection.destroy())
  const { heard, exchange } = listeningExchange()
  connection.begin(exchange)
  await eventually('the backend has the request', () => expect(side).toBeDefined())
  return {
    heard,
    sendInterimResponse: () => side?.write('HTTP/1.1 102 Processing\r\n\r\n'),
    pass: (ms) => connection.expire((nowMs += ms)),
    markLongResponse: () => connection.markLongResponse(),
  }
}

async function overHttp2(): Promise<Waiting> {
  let nowMs = 0
  let stream: ServerHttp2Stream | undefined
  const [near, far] = duplexPair()
  const server = createServer()
  server.on('stream', (begun: ServerHttp2Stream) => {
    begun.on('error', () => undefined)
    stream = begun
  })
  server.emit('connection', far)
  const { heard, exchange } = listeningExchange()
  const owner = {
    onReady: (ready: UpstreamSession) => ready.begin(exchange),
    mayRetire: () => false,
    onRoom: () => undefined,
    onGoaway: () => undefined,
    onSessionClosed: () => undefined,
  }
  const options = { ...timeouts, scheme: 'http', retireAtMs: Infinity, maxRequests: 0 } as const
  const session = new UpstreamSession(near, owner, { ...options, now: () => nowMs })
  onTestFinished(() => session.destroy('the test is over'))
  await eventually('the backend has the request', () => expect(stream).toBeDefined())
  return {
    heard,
    sendInterimResponse: () => stream?.additionalHeaders({ ':status': 102 }),
    pass: (ms) => session.expire((nowMs += ms), false),
  }
}

describe.each([
  ['HTTP/1.1', overHttp1],
  ['HTTP/2', overHttp2],
])('over %s', (_, begin) => {
  test('each interim response restarts the response timeout', async () => {
    const waiting = await begin()
    for (let i = 1; i <= 40; i++) {
      waiting.pass(firstByteMs - 1)
      waiting.sendInterimResponse()
      await eventually('it has come', () => expect(waiting.heard).toHaveLength(i))
    }
    expect(waiting.heard).toEqual(Array<string>(40).fill('102'))
    waiting.pass(firstByteMs + 1)
    expect(waiting.heard.at(-1)).toBe('timeout')
  })
})

test('a request that has had an interim response does not take a connection from short requests', async () => {
  const waiting = await overHttp1()
  expect([waiting.markLongResponse?.(), waiting.markLongResponse?.()]).toEqual([false, false])
  waiting.sendInterimResponse()
  await eventually('it has come', () => expect(waiting.heard).toHaveLength(1))
  expect([waiting.markLongResponse?.(), waiting.markLongResponse?.()]).toEqual([false, true])
})
