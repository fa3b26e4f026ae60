import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { Http2Output, type OutgoingStream } from '../../../../proxy/http/http2/output/output.ts'
import { Http2Response } from '../../../../proxy/http/http2/response.ts'
import type { ClientRequest } from '../../../../proxy/http/message/client-request.ts'

/** A socket whose peer has not read `writableLength` bytes. */
class FakeSocket extends EventEmitter {
  readonly destroyed = false
  writableNeedDrain = false
  readonly writableLength: number
  readonly written: Buffer[] = []

  constructor(writableLength: number) {
    super()
    this.writableLength = writableLength
  }

  cork(): void {}
  uncork(): void {}

  write(bytes: Buffer): boolean {
    this.written.push(bytes)
    return true
  }
}

const nothing = (): undefined => undefined
const events = {
  ...{ onLocalEnd: nothing, onTruncated: nothing, onSent: nothing },
  onException(error: unknown) {
    throw error
  },
}

function writtenBehind(waiting: number, frames: readonly Buffer[]): Buffer[] {
  const socket = new FakeSocket(waiting)
  const output = new Http2Output(socket as unknown as Socket, events)
  for (const frame of frames) output.send(frame)
  output.flush()
  return socket.written
}

test.each([1, 2])('frames pending for the client keep no memory but their own: %i', (count) => {
  const frames = Array.from({ length: count }, (_, i) => Buffer.alloc(65_536, i).subarray(0, 9))
  const written = writtenBehind(1, frames)
  expect(written.map(({ buffer }) => buffer.byteLength)).toEqual([9 * count])
  expect(Buffer.concat(written).equals(Buffer.concat(frames))).toBe(true)
})

test('a single frame that goes out at once is not copied', () => {
  const frame = Buffer.alloc(9)
  expect(writtenBehind(0, [frame])).toEqual([frame])
})

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A response on a stream with a large window, on a connection with the default window. */
function openStream(socket: FakeSocket) {
  const output = new Http2Output(socket as unknown as Socket, events)
  const enqueue = (): void => output.enqueue(stream)
  const owner = {
    isBacklogged: false,
    enqueue,
    sendInterimResponse: nothing,
    reset: nothing,
    destroyConnection: nothing,
  }
  const response = new Http2Response(owner, {} as unknown as ClientRequest)
  const stream: OutgoingStream = { id: 1, response, isOpen: true, windowDifference: 0, isQueued: false }
  output.setInitialWindow(2 ** 30, [stream])
  response.writeHead(200, [])
  return { output, response }
}

/** Bytes of memory that the response keeps when ten bytes arrive each turn, each time as part of a 64 KiB buffer. */
async function keptByShortPieces(response: Http2Response): Promise<number> {
  for (let i = 0; i < 100; i++) {
    response.write(Buffer.alloc(65_536).subarray(0, 10))
    await endOfTurn()
  }
  const pieces: Buffer[] = []
  response.takeBody(response.pendingBytes, pieces)
  const memories = new Set(pieces.map(({ buffer }) => buffer))
  return [...memories].reduce((sum, { byteLength }) => sum + byteLength, 0)
}

test('a connection without a window costs nothing while it waits, and its pending data keeps little memory', async () => {
  const socket = new FakeSocket(0)
  const { output, response } = openStream(socket)
  const flush = vi.spyOn(output, 'flush')
  response.write(Buffer.alloc(65_535))
  response.write(Buffer.alloc(1))
  await endOfTurn()
  expect([flush.mock.calls.length, response.pendingBytes]).toEqual([1, 1])
  for (let turn = 0; turn < 5; turn++) await endOfTurn()
  expect(flush).toHaveBeenCalledTimes(1)
  expect(await keptByShortPieces(response)).toBeLessThan(8 * 1024)
})

test('data pending for a client that does not read keeps little memory', async () => {
  const socket = new FakeSocket(1)
  socket.writableNeedDrain = true
  expect(await keptByShortPieces(openStream(socket).response)).toBeLessThan(8 * 1024)
})

test('a window update flushes the pending data', async () => {
  const socket = new FakeSocket(0)
  const { output, response } = openStream(socket)
  for (const bytes of [65_535, 10, 20]) {
    response.write(Buffer.alloc(bytes))
    await endOfTurn()
  }
  expect(response.pendingBytes).toBe(30)
  output.widen(100)
  await endOfTurn()
  expect(response.pendingBytes).toBe(0)
})
