import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { readOnAfterError, surviveWriteErrors } from '../../../../proxy/http/upstream/write-errors.ts'
import { startRawBackend } from '../../../support/http/backend.ts'
import { eventually } from '../../../support/wait/eventually.ts'

/** Bytes that encode their own position. */
const response = Buffer.from(Uint32Array.from({ length: 100_000 }, (_, i) => i).buffer)

/** Resolves when the socket has stopped reading, because much data waits in it. */
async function untilFull(socket: Socket): Promise<void> {
  await eventually(
    'as much waits as the socket takes',
    () => socket.readableLength >= socket.readableHighWaterMark,
  )
}

test('bytes received before a failed write are delivered completely', async () => {
  const backend = await startRawBackend((side) => side.write(response))
  const socket = connect(Number(new URL(backend.url).port), '127.0.0.1')
  await once(socket, 'connect')
  surviveWriteErrors(socket)
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => {
    if (pieces.push(piece) === 1) socket.pause()
  })
  await untilFull(socket)
  const all = (pieces[0]?.length ?? 0) + socket.readableLength
  backend.connections[0]?.resetAndDestroy()
  const failed = new Promise<void>((resolve) => {
    socket.on('error', () => {
      if (!socket.destroyed) readOnAfterError(socket)
      resolve()
    })
  })
  const writing = setInterval(() => socket.write('more of the request'), 5)
  await failed
  clearInterval(writing)
  expect(socket.destroyed).toBe(false)
  socket.resume()
  const received = await eventually('all that was there is given out', () => {
    const bytes = Buffer.concat(pieces)
    expect(bytes.length).toBeGreaterThanOrEqual(all)
    return bytes
  })
  expect(received.equals(response.subarray(0, received.length))).toBe(true)
  socket.destroy()
})
