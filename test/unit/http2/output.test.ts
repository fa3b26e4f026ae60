import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Http2Output } from '../../../proxy/http2/output.ts'

/** A socket of which `writableLength` bytes have not been taken. */
class FakeSocket extends EventEmitter {
  readonly destroyed = false
  readonly writableNeedDrain = false
  readonly writableLength: number
  readonly written: Buffer[] = []

  constructor(writableLength: number) {
    super()
    this.writableLength = writableLength
  }

  write(bytes: Buffer): boolean {
    this.written.push(bytes)
    return true
  }
}

const nothing = (): undefined => undefined
const events = { onLocalEnd: nothing, onCut: nothing, onSent: nothing, onException: nothing }

function writtenBehind(waiting: number, frames: readonly Buffer[]): Buffer[] {
  const socket = new FakeSocket(waiting)
  const output = new Http2Output(socket as unknown as Socket, events)
  for (const frame of frames) output.send(frame)
  output.flush()
  return socket.written
}

test.each([1, 2])('frames that wait for the client keep no memory but their own: %i', (count) => {
  const frames = Array.from({ length: count }, (_, i) => Buffer.alloc(65_536, i).subarray(0, 9))
  const written = writtenBehind(1, frames)
  expect(written.map(({ buffer }) => buffer.byteLength)).toEqual([9 * count])
  expect(Buffer.concat(written).equals(Buffer.concat(frames))).toBe(true)
})

test('a single frame that goes out at once is not copied', () => {
  const frame = Buffer.alloc(9)
  expect(writtenBehind(0, [frame])).toEqual([frame])
})
