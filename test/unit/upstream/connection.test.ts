import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { ConnectionLife } from '../../../proxy/upstream/connection-life.ts'
import { UpstreamConnection } from '../../../proxy/upstream/connection.ts'
import type { UpstreamChannel, UpstreamExchange } from '../../../proxy/upstream/exchange.ts'
import type { UpstreamFailure } from '../../../proxy/upstream/failure.ts'
import { startRawBackend } from '../../support/backend.ts'

// A request without a body is written at the end of the turn of the event loop. What becomes of the connection before that?

const head = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'

async function connected() {
  let received = ''
  const backend = await startRawBackend((side) => {
    side.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  })
  const socket: Socket = connect(Number(new URL(backend.url).port), '127.0.0.1')
  await once(socket, 'connect')
  const owner = { onRequestSent: vi.fn(), onFree: vi.fn(), onGone: vi.fn(), onPlaceFree: vi.fn() }
  const timeouts = { firstByteMs: 1_000, idleMs: 1_000, bareLf: false }
  const life = new ConnectionLife(0, Number.POSITIVE_INFINITY)
  const connection = new UpstreamConnection(socket, owner, timeouts, life, () => performance.now())
  return { connection, socket, owner, received: () => received }
}

function exchange() {
  const failures: UpstreamFailure[] = []
  const channels: UpstreamChannel[] = []
  const told = { onHead: vi.fn(), onEnd: vi.fn() }
  const sent: UpstreamExchange = {
    ...{ method: 'GET', client: 'a', cancelled: false, bodyPending: false, upgrades: false },
    isRepeatable: true,
    start(channel) {
      channels.push(channel)
      if (channel.socket) channel.sendHead(head)
      channel.requestSent()
    },
    onInformation: () => undefined,
    onBody: () => undefined,
    onPause: () => undefined,
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
  await vi.waitFor(() => expect(received()).toBe(head))
})

test('it was not begun with where the connection turns out to be closed before that', async () => {
  const { connection, socket } = await connected()
  const { sent, failures } = exchange()
  connection.begin(sent)
  socket.emit('end')
  await endOfTurn()
  expect(failures).toMatchObject([{ kind: 'reset', isUnprocessed: true }])
  expect(socket.bytesWritten).toBe(0)
})

test('but may have been afterwards', async () => {
  const { connection, socket } = await connected()
  const { sent, failures } = exchange()
  connection.begin(sent)
  await endOfTurn()
  socket.emit('end')
  expect(failures).toMatchObject([{ kind: 'reset', isUnprocessed: false }])
})

test('a client that leaves before that leaves nothing to the backend', async () => {
  const { connection, socket } = await connected()
  const { sent, failures, channels } = exchange()
  connection.begin(sent)
  channels[0]?.abort('the client went away')
  await endOfTurn()
  expect(failures).toMatchObject([{ kind: 'aborted' }])
  expect(socket.bytesWritten).toBe(0)
})

// Otherwise the response to this request would answer the next one.
test('behind a response to nothing that was sent the connection is not used again', async () => {
  const { connection, socket, owner } = await connected()
  const { sent, told } = exchange()
  connection.begin(sent)
  socket.emit('data', Buffer.from('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n'))
  await endOfTurn()
  expect(told.onEnd).toHaveBeenCalledOnce()
  expect(owner.onFree).not.toHaveBeenCalled()
  expect(owner.onGone).toHaveBeenCalledOnce()
  expect(socket.bytesWritten).toBe(0)
})
