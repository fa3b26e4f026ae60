import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { ConnectionLife } from '../../../../proxy/http/upstream/keep-alive/connection-life.ts'
import { UpstreamConnection } from '../../../../proxy/http/upstream/connection.ts'
import type { UpstreamChannel, UpstreamExchange } from '../../../../proxy/http/upstream/exchange.ts'
import type { UpstreamFailure } from '../../../../proxy/http/upstream/failure.ts'
import { connectionOpener } from '../../../../proxy/http/upstream/open-connection.ts'
import { startRawBackend } from '../../../support/http/backend.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

// A request without a body is written at the end of the turn of the event loop, and a response is read then. These tests cover the outcomes
// of the connection before that.

const head = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'

async function connected() {
  let received = ''
  const backend = await startRawBackend((side) => {
    side.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  })
  const socket: Socket = connect(Number(new URL(backend.url).port), '127.0.0.1')
  await once(socket, 'connect')
  return { ...connectionOn(socket), received: () => received }
}

function connectionOn(socket: Socket) {
  const owner = {
    onRequestSent: vi.fn(),
    onAnswer: vi.fn(),
    onClosedIdle: vi.fn(),
    onFree: vi.fn(),
    onClosed: vi.fn(),
    onPlaceFree: vi.fn(),
  }
  const timeouts = { firstByteMs: 1_000, idleMs: 1_000 }
  const life = new ConnectionLife(0, Number.POSITIVE_INFINITY)
  const connection = new UpstreamConnection(socket, owner, timeouts, life, () => performance.now())
  return { connection, socket, owner }
}

function exchange() {
  const failures: UpstreamFailure[] = []
  const channels: UpstreamChannel[] = []
  const told = { onHead: vi.fn(), onEnd: vi.fn() }
  const sent: UpstreamExchange = {
    ...{
      method: 'GET',
      client: 'a',
      isCancelled: false,
      headBytes: 0,
      isBodyPending: false,
      upgrades: false,
    },
    isRetryable: true,
    start(channel) {
      channels.push(channel)
      channel.writeHead(upstreamRequest())
    },
    onInterimResponse: () => undefined,
    onBody: () => undefined,
    onReadEnd: () => undefined,
    onTrailers: () => undefined,
    onUpgrade: () => undefined,
    onFailure: (failure) => failures.push(failure),
    ...told,
  }
  return { sent, failures, channels, told }
}

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a request is written when all that has arrived was read', async () => {
  const { connection, socket, received } = await connected()
  connection.begin(exchange().sent)
  expect(socket.bytesWritten).toBe(0)
  await endOfTurn()
  expect(socket.bytesWritten).toBe(head.length)
  await eventually('the backend has the head', () => expect(received()).toBe(head))
})

test('the request counts as not started if the connection turns out to be closed before it is written', async () => {
  const { connection, socket } = await connected()
  const { sent, failures } = exchange()
  connection.begin(sent)
  socket.emit('end')
  await endOfTurn()
  expect(failures).toMatchObject([{ kind: 'reset', isUnprocessed: true }])
  expect(socket.bytesWritten).toBe(0)
})

test('the request may have been started if the connection closes after it was written', async () => {
  const { connection, socket } = await connected()
  const { sent, failures } = exchange()
  connection.begin(sent)
  await endOfTurn()
  socket.emit('end')
  expect(failures).toMatchObject([{ kind: 'reset', isUnprocessed: false }])
})

test('the backend gets nothing of a request whose client disconnects before it is written', async () => {
  const { connection, socket } = await connected()
  const { sent, failures, channels } = exchange()
  connection.begin(sent)
  channels[0]?.abort('the client went away')
  await endOfTurn()
  expect(failures).toMatchObject([{ kind: 'aborted' }])
  expect(socket.bytesWritten).toBe(0)
})

// A response that arrives before its request answers another request, or no request (RFC 9112 section 9.2).
describe('bytes that arrive before the request is written', () => {
  const unasked = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale'

  /** When the bytes arrive, after the connection has got its exchange. */
  const moments: readonly (readonly [string, (step: () => void) => void])[] = [
    ['in a microtask', (step) => queueMicrotask(step)],
    ['in the next tick', (step) => process.nextTick(step)],
    ['at the end of the turn, before it', (step) => void setImmediate(step)],
  ]
  const pieces: readonly (readonly [string, readonly string[]])[] = [
    ['a whole response', [unasked]],
    ['one that ends the connection', ['HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n']],
    ['a part of one', [unasked.slice(0, 20)]],
    ['one byte', ['H']],
    ['an interim response', ['HTTP/1.1 103 Early Hints\r\n\r\n']],
    [
      'a handshake',
      ['HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ],
    ['two pieces', [unasked.slice(0, 20), unasked.slice(20)]],
    ['garbage', ['\0']],
  ]
  /** The ways in which the request is delayed. */
  const requests: readonly (readonly [string, boolean, (channel: UpstreamChannel) => void])[] = [
    ['a request', false, (channel) => void channel.writeHead(upstreamRequest())],
    ['a handshake', true, (channel) => void channel.writeHead(upstreamRequest({ upgrade: 'websocket' }))],
    [
      'a request with a body',
      false,
      (channel) => {
        channel.writeHead(upstreamRequest({ hasBody: true }))
        channel.write(Buffer.from('body'))
        channel.endBody()
      },
    ],
  ]
  const cases = requests.flatMap(([request, upgrades, start]) =>
    moments.flatMap(([moment, schedule]) =>
      pieces.map(([what, chunks]) => ({ request, upgrades, start, moment, schedule, what, chunks })),
    ),
  )

  test.each(cases)(
    '$request: $what that arrives $moment ends the connection, and nothing was sent',
    async ({ upgrades, start, schedule, chunks }) => {
      const { connection, socket, owner } = await connected()
      const { sent, failures, told } = exchange()
      // This runs before the connection's own work at the end of the turn.
      schedule(() => {
        for (const chunk of chunks) socket.emit('data', Buffer.from(chunk))
      })
      connection.begin({
        ...sent,
        upgrades,
        start,
        onUpgrade: told.onHead,
        onInterimResponse: told.onHead,
      })
      await endOfTurn()
      await endOfTurn()
      expect(failures).toMatchObject([{ kind: 'reset', isUnprocessed: true }])
      expect(told.onHead).not.toHaveBeenCalled()
      expect(told.onEnd).not.toHaveBeenCalled()
      expect(owner.onFree).not.toHaveBeenCalled()
      expect(owner.onClosed).toHaveBeenCalledOnce()
      expect(socket.bytesWritten).toBe(0)
      expect(socket.destroyed).toBe(true)
    },
  )
})

const response = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** A connection whose request was sent, and that now waits for the response. */
async function waiting() {
  const made = await connected()
  const { sent, told, failures } = exchange()
  made.connection.begin(sent)
  await endOfTurn()
  return { ...made, told, failures }
}

test('a response is read when the turn is over', async () => {
  const { socket, owner, told } = await waiting()
  socket.emit('data', Buffer.from(response))
  expect(told.onHead).not.toHaveBeenCalled()
  await endOfTurn()
  expect(told.onEnd).toHaveBeenCalledOnce()
  expect(owner.onFree).toHaveBeenCalledOnce()
})

test('the rest of a response that arrives in the same turn is read after it', async () => {
  const { socket, told, failures } = await waiting()
  socket.emit('data', Buffer.from(response.slice(0, 9)))
  socket.emit('data', Buffer.from(response.slice(9)))
  await endOfTurn()
  expect(told.onEnd).toHaveBeenCalledOnce()
  expect(failures).toEqual([])
})

test.each(['end', 'close'])('a response is read although "%s" comes in the same turn', async (event) => {
  const { socket, told, failures, owner } = await waiting()
  socket.emit('data', Buffer.from(response))
  socket.emit(event)
  expect(told.onEnd).toHaveBeenCalledOnce()
  expect(failures).toEqual([])
  expect(owner.onClosed).toHaveBeenCalledOnce()
})

test('a connection that the backend has closed after its response serves no other request', async () => {
  const { connection, socket, owner, told } = await waiting()
  socket.emit('data', Buffer.from(response))
  socket.destroy()
  await once(socket, 'close')
  expect(told.onEnd).toHaveBeenCalledOnce()
  expect(owner.onFree).not.toHaveBeenCalled()
  expect(owner.onClosed).toHaveBeenCalledWith(connection)
})

test('bytes that arrive with a handshake go to the tunnel, although the connection ends in the same turn', async () => {
  const { connection, socket } = await connected()
  const { sent } = exchange()
  const rests: string[] = []
  connection.begin({
    ...sent,
    upgrades: true,
    onUpgrade: (_, __, rest) => rests.push(rest.toString('latin1')),
  })
  await endOfTurn()
  socket.emit(
    'data',
    Buffer.from('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\nmore'),
  )
  expect(rests).toEqual(['more'])
})

// The pieces may wait there for a slow client, and nothing copies them.
test('the pieces of a tunnel do not share memory', async () => {
  const backend = await startRawBackend((side) => {
    side.once('data', () => {
      side.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n')
      side.on('data', () => side.write('short'))
    })
  })
  const socket = connectionOpener(new URL(backend.url))(() => undefined)
  await once(socket, 'connect')
  const tunnels: Socket[] = []
  const connection = connectionOn(socket).connection
  connection.begin({ ...exchange().sent, upgrades: true, onUpgrade: (_, tunnel) => tunnels.push(tunnel) })
  await eventually('the tunnel is open', () => expect(tunnels).toEqual([socket]))
  socket.write('.')
  const [piece] = (await once(socket, 'data')) as [Buffer]
  expect(piece.buffer.byteLength).toBe(5)
  socket.destroy()
})

test('a large piece is read at once, as the rest of it follows', async () => {
  const { socket, told } = await waiting()
  socket.emit(
    'data',
    Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n'), Buffer.alloc(10_000)]),
  )
  expect(told.onHead).toHaveBeenCalledOnce()
})

test('a response that is here and unread is not late', async () => {
  const { connection, socket, told, failures } = await waiting()
  socket.emit('data', Buffer.from(response))
  connection.expire(Number.POSITIVE_INFINITY)
  await endOfTurn()
  expect(failures).toEqual([])
  expect(told.onEnd).toHaveBeenCalledOnce()
})

// If they were kept until the end of the turn, they would answer a request that has begun meanwhile.
test('bytes on an idle connection end it at once', async () => {
  const { socket, owner } = await waiting()
  socket.emit('data', Buffer.from(response))
  await endOfTurn()
  expect(owner.onClosed).not.toHaveBeenCalled()
  socket.emit('data', Buffer.from(response))
  expect(owner.onClosed).toHaveBeenCalledOnce()
})
