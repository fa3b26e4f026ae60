import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { connectionOpener, shareMemory } from '../../../../proxy/http/upstream/open-connection.ts'
import { startRawBackend } from '../../../support/http/backend.ts'
import { nextUncaughtException } from '../../../support/run/uncaught-exception.ts'
import { authorityFile, readPair } from '../../../support/network/certificates.ts'
import { eventually } from '../../../support/wait/eventually.ts'
import { passes } from '../../../support/wait/passes.ts'

// All reads of a connection use the same buffer, and must not change bytes read earlier.

async function connectedTo(onConnection: (side: Socket) => void): Promise<Socket> {
  const { url } = await startRawBackend(onConnection)
  const open = connectionOpener(new URL(url))
  const socket = open(() => undefined)
  await once(socket, 'connect')
  return socket
}

test.each([
  ['localhost', 'localhost'],
  ['localhost.', 'localhost'],
  ['127.0.0.1', false],
])('to https://%s the server name is %s', async (name, servername) => {
  const names: (string | false)[] = []
  const server = createServer(readPair('first'), (side) => {
    names.push(side.servername ?? false)
    side.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const authorities = readFileSync(authorityFile)
  const open = connectionOpener(new URL(`https://${name}:${port}`), { authorities, address: '127.0.0.1' })
  const socket = open(() => undefined)
  await once(socket, 'secureConnect')
  await eventually('the server has the name', () => expect(names).toEqual([servername]))
  socket.destroy()
})

const hash = (pieces: readonly Buffer[]): string =>
  createHash('sha256').update(Buffer.concat(pieces)).digest('hex')

test('pieces of every size stay unchanged while others arrive', async () => {
  const sizes = [
    1, 8_191, 8_192, 16_383, 16_384, 20_000, 32_767, 32_768, 50_000, 65_536, 81_920, 300_000, 2, 100,
  ]
  const sent = sizes.map((size) => randomBytes(size))
  const socket = await connectedTo((side) => {
    let next = 0
    // The reader acknowledges each piece.
    side.on('data', () => side.write(sent[next++] ?? ''))
  })
  const received: Buffer[] = []
  for (const { length } of sent) {
    socket.write('.')
    let left = length
    while (left > 0) {
      const [piece] = (await once(socket, 'data')) as [Buffer]
      received.push(piece)
      left -= piece.length
    }
    expect(left).toBe(0)
  }
  expect(received.length).toBeGreaterThanOrEqual(sizes.length)
  expect(hash(received)).toBe(hash(sent))
  socket.destroy()
})

test('a pause stops the backend from sending, and loses nothing', async () => {
  const sent = randomBytes(32 * 1024 * 1024)
  const sides: Socket[] = []
  const socket = await connectedTo((side) => {
    sides.push(side)
    side.end(sent)
  })
  const received: Buffer[] = []
  socket.on('data', (piece: Buffer) => {
    received.push(piece)
    socket.pause()
  })
  await eventually('the first piece has come', () => expect(received.length).toBe(1))
  const [side] = sides
  // More than the buffers of both ends hold.
  expect(side?.writableLength).toBeGreaterThan(0)
  await passes(50)
  expect(received.length).toBe(1)
  expect(side?.writableLength).toBeGreaterThan(0)
  const timer = setInterval(() => socket.resume(), 0)
  await once(socket, 'end')
  clearInterval(timer)
  expect(hash(received)).toBe(hash([sent]))
  socket.destroy()
})

test('bytes that arrive before anybody listens are buffered, up to a small limit', async () => {
  const sent = randomBytes(32 * 1024 * 1024)
  const sides: Socket[] = []
  const socket = await connectedTo((side) => {
    sides.push(side)
    side.end(sent)
  })
  await eventually('something waits to be read', () => expect(socket.readableLength).toBeGreaterThan(0))
  await passes(50)
  expect(socket.readableLength).toBeLessThan(256 * 1024)
  const received: Buffer[] = []
  socket.on('data', (piece: Buffer) => received.push(piece))
  await once(socket, 'end')
  expect(hash(received)).toBe(hash([sent]))
  socket.destroy()
})

test('a listener that throws ends the connection, and the bytes passed to it stay unchanged', async () => {
  const sent = randomBytes(12_000)
  const socket = await connectedTo((side) => {
    side.on('error', () => undefined)
    side.on('data', () => side.write(sent))
    side.write(sent)
  })
  const received: Buffer[] = []
  const uncaught = nextUncaughtException()
  socket.on('data', (piece: Buffer) => {
    received.push(piece)
    socket.write('.')
    throw new Error('a bug')
  })
  expect(await uncaught).toEqual(new Error('a bug'))
  await eventually('the connection is closed', () => expect(socket.destroyed).toBe(true))
  expect(hash(received)).toBe(hash([sent.subarray(0, Buffer.concat(received).length)]))
})

test('short pieces share memory only for a reader who asks for it', async () => {
  const socket = await connectedTo((side) => side.on('data', (bytes) => side.write(bytes)))
  const echoed = async (): Promise<Buffer> => {
    socket.write('short')
    const [piece] = (await once(socket, 'data')) as [Buffer]
    return piece
  }
  expect((await echoed()).buffer.byteLength).toBe(5)
  shareMemory(socket, true)
  expect((await echoed()).buffer.byteLength).toBeGreaterThan(5)
  shareMemory(socket, false)
  expect((await echoed()).buffer.byteLength).toBe(5)
  socket.destroy()
})
