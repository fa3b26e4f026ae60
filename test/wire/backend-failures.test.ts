import { connect, type Socket } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { startRawBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { readConversation, type Conversation } from '../support/http/raw-client.ts'

// docs/http.md says what a client gets when the backend fails in each of these ways. The result must be the same for a request without
// content, a request whose content has been sent, and a request whose content is still being sent.

const badGateway = { status: 502, body: '{"code":502,"error":"The backend cannot be reached"}' }
const tooSlow = { status: 504, body: '{"code":504,"error":"The backend did not answer in time"}' }
const ok = 'HTTP/1.1 200 OK\r\n'

type Serve = (socket: Socket) => void

/** What the backend does when the head of a request has arrived, and what the client gets. */
const failures: [name: string, serve: Serve, expected: { status: number; body: string } | 'broken'][] = [
  ['resets before the head', (socket) => socket.resetAndDestroy(), badGateway],
  ['closes before the head', (socket) => socket.end(), badGateway],
  [
    'resets in the head',
    (socket) => sendThen(socket, `${ok}X-A`, () => socket.resetAndDestroy()),
    badGateway,
  ],
  ['closes in the head', (socket) => socket.end(`${ok}X-A`), badGateway],
  [
    'resets after the head',
    (socket) => sendThen(socket, `${ok}Content-Length: 2\r\n\r\n`, () => socket.resetAndDestroy()),
    'broken',
  ],
  [
    'resets in the body',
    (socket) => sendThen(socket, `${ok}Content-Length: 2\r\n\r\nh`, () => socket.resetAndDestroy()),
    'broken',
  ],
  [
    'resets in a body up to the end',
    (socket) => sendThen(socket, `${ok}\r\nh`, () => socket.resetAndDestroy()),
    'broken',
  ],
  ['never answers', () => undefined, tooSlow],
  ['hangs in the head', (socket) => socket.write(`${ok}X-A`), tooSlow],
  [
    'trickles a head that never ends',
    (socket) => trickle(socket, ok + 'X-A: '.padEnd(1_000, 'x'), 20),
    tooSlow,
  ],
  ['hangs after the head', (socket) => socket.write(`${ok}Content-Length: 2\r\n\r\n`), 'broken'],
  [
    'hangs in the body',
    (socket) => socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n`),
    'broken',
  ],
  [
    'trickles a body',
    (socket) => trickle(socket, 'hello world!', 20, `${ok}Content-Length: 12\r\n\r\n`),
    { status: 200, body: 'hello world!' },
  ],
  [
    'answers early that it is too large',
    (socket) => socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig'),
    { status: 413, body: 'big' },
  ],
  [
    'answers early and closes',
    (socket) => socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig'),
    { status: 413, body: 'big' },
  ],
  [
    'answers early and resets',
    (socket) =>
      sendThen(socket, 'HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig', () =>
        socket.resetAndDestroy(),
      ),
    { status: 413, body: 'big' },
  ],
  [
    'sends more than it declared',
    (socket) => socket.write(`${ok}Content-Length: 2\r\n\r\nhi there`),
    { status: 200, body: 'hi' },
  ],
  ['sends less than it declared', (socket) => socket.end(`${ok}Content-Length: 4\r\n\r\nhi`), 'broken'],
]

/** How to send the request: `start` at once, then `more` again and again until a response arrives. */
const requests: [name: string, start: string, more: string][] = [
  ['without content', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', ''],
  ['with content', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello', ''],
  [
    'with content that is still sent',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
    '5\r\nhello\r\n',
  ],
]

type Gateways = {
  readonly patient: HostedGateway
  /** Has a short timeout for the head of a response. */
  readonly hasty: HostedGateway
  /** Has a short timeout between pieces of a body. */
  readonly hastyInBodies: HostedGateway
}

let gateways: Gateways
let upstreamUrl: string

beforeAll(async () => {
  const backend = await startRawBackend((socket) => {
    socket.on('data', (chunk) => {
      const [, index] = / \/(\d+) HTTP\/1\.1\r\n/.exec(chunk.toString('latin1')) ?? []
      if (index !== undefined) failures[Number(index)]?.[1](socket)
    })
  })
  upstreamUrl = backend.url
  gateways = {
    patient: await start(),
    hasty: await start({ UPSTREAM_TIMEOUT: '600ms' }),
    hastyInBodies: await start({ UPSTREAM_IDLE_TIMEOUT: '1s' }),
  }
})

function start(timeouts: Record<string, string> = {}): Promise<HostedGateway> {
  return startHosted({ UPSTREAM_URL: upstreamUrl, ...timeouts })
}

/** Uses a short timeout only for failures that this timeout ends, because a busy machine may delay the others. */
function gatewayFor(name: string, expected: unknown): HostedGateway | Promise<HostedGateway> {
  // A connection that closes unannounced stays in the pool for a moment, where it must not get the request of another test.
  if (name === 'answers early and closes') return start()
  if (expected === tooSlow) return gateways.hasty
  return name.startsWith('hangs ') ? gateways.hastyInBodies : gateways.patient
}

describe.concurrent.each(requests)('a request %s, and the backend', (_, head, more) => {
  test.each(failures)('%s', async (name, serve, expected) => {
    // The path tells the backend which failure to play.
    const path = `/${failures.findIndex((failure) => failure[1] === serve)}`
    // The gateway waits for a response only once the content has been sent, so the content must end.
    const isEndless = more !== '' && expected === tooSlow
    const { port } = await gatewayFor(name, expected)
    const most = isEndless ? 5 : Infinity
    const { responses, rest, ended } = await request(head.replace('/', path), more, most, port)
    if (expected === 'broken') {
      expect(responses, name).toEqual([])
      expect(ended, name).not.toBe('open')
    } else {
      expect(responses, name).toMatchObject([expected])
      expect(rest, name).toBe('')
    }
  })

  test('a backend that does not listen is a 502', async () => {
    const alone = await startHosted({ UPSTREAM_URL: 'http://127.0.0.1:1' })
    const { responses } = await request(head, more, Infinity, alone.port)
    expect(responses).toMatchObject([badGateway])
  })
})

/** Sends a request with its content up to `times` times, and reads until a response is complete or the connection has ended. */
function request(start: string, more: string, times: number, port: number): Promise<Conversation> {
  return new Promise((resolve) => {
    let received = ''
    let ended: Conversation['ended'] = 'open'
    let left = times
    const client = connect(port, '127.0.0.1')
    client.write(start)
    const sending = setInterval(() => {
      if (more !== '' && client.writable && left-- > 0) client.write(left === 0 ? `${more}0\r\n\r\n` : more)
    }, 10)
    client.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (readConversation(received, ended, false).responses.length > 0) client.destroy()
    })
    client.on('end', () => (ended = 'closed'))
    client.on('error', () => (ended = 'reset'))
    client.on('close', () => {
      clearInterval(sending)
      resolve(readConversation(received, ended, false))
    })
  })
}

/**
 * A reset discards unread bytes, and nothing shows when the gateway has read them. So the reset waits for longer than a busy machine delays
 * the gateway, but not until the gateway gives up waiting for the rest.
 */
function sendThen(socket: Socket, bytes: string, then: () => void): void {
  socket.write(bytes, () => setTimeout(then, 250))
}

function trickle(socket: Socket, bytes: string, everyMs: number, before = ''): void {
  socket.write(before)
  let at = 0
  const timer = setInterval(() => {
    if (at === bytes.length || !socket.writable) clearInterval(timer)
    else socket.write(bytes.charAt(at++))
  }, everyMs)
}
