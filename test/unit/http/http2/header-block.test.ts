import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
import { Http2Connection } from '../../../../proxy/http/http2/connection.ts'
import { ConnectionError, flags } from '../../../../proxy/http/http2/frames.ts'
import { HeaderBlock, OversizeMemories, OversizeMemory } from '../../../../proxy/http/http2/header-block.ts'
import { collectGarbage } from '../../../../shared/v8-gc.ts'
import { endHeaders, frame, frameTypes, preface, requestFields } from '../../../support/http/raw-http2.ts'
import { seededRandom } from '../../../support/random/seeded-random.ts'
import { testSeed } from '../../../support/random/seed.ts'

test('a header block in pieces of a byte takes little more memory than its bytes', () => {
  const blocks: HeaderBlock[] = []
  const before = memoryUse()
  for (let i = 0; i < 20; i++) {
    const block = new HeaderBlock(16 * 1024)
    block.begin(1, flags.endStream, Buffer.of(0))
    for (let at = 1; at < 60_000; at++) block.add(Buffer.of(at & 0xff))
    blocks.push(block)
  }
  expect(memoryUse() - before).toBeLessThan(20 * 256 * 1024)
  for (const block of blocks) {
    const whole = block.take()
    expect(whole).toHaveLength(60_000)
    expect(whole.equals(Buffer.from(Array.from(whole, (_, at) => at & 0xff)))).toBe(true)
  }
})

function memoryUse(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

test('a header block of one frame is not copied', () => {
  const block = new HeaderBlock(16 * 1024)
  const payload = Buffer.from('abc')
  block.begin(1, flags.endHeaders, payload)
  expect(block.take().buffer).toBe(payload.buffer)
})

test('blocks that are too large share 16 MiB, which each gives back when it is complete or its connection has closed', () => {
  const random = seededRandom(testSeed())
  const draw = (from: number, to: number): number => from + Math.floor(random() * (to - from))
  const oversize = new OversizeMemory(64 * 1024)
  const open: HeaderBlock[] = []
  let refused = 0
  for (let i = 0; i < 2_000; i++) {
    const block = new HeaderBlock(16 * 1024, () => oversize)
    block.begin(1, flags.endStream, Buffer.alloc(draw(0, 16 * 1024)))
    const bytes = draw(0, 64 * 1024)
    try {
      for (let added = 0; added < bytes; added += 6_000) block.add(Buffer.alloc(6_000))
      open.push(block)
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error
      refused += 1
      block.drop()
    }
    if (draw(0, 4) === 0) open.splice(draw(0, open.length), 1)[0]?.take()
    expect(oversize.bytes).toBeLessThanOrEqual(16 * 1024 * 1024)
  }
  expect(refused).toBeGreaterThan(0)
  for (const block of open) {
    if (draw(0, 2) === 0) block.take()
    else block.drop()
  }
  expect(oversize.bytes).toBe(0)
})

test('while others take all the memory for large blocks, a block of usual length is still received', () => {
  const oversize = new OversizeMemory(64 * 1024)
  while (oversize.take(1024));
  const block = new HeaderBlock(16 * 1024, () => oversize)
  block.begin(1, flags.endStream, Buffer.alloc(1))
  for (let at = 1; at < 16 * 1024; at++) block.add(Buffer.of(0))
  expect(block.take()).toHaveLength(16 * 1024)
})

test('while clients take all the memory for large blocks, a large block of a proxy is still received', () => {
  const { ofClients, ofProxies } = new OversizeMemories(16 * 1024)
  while (ofClients.take(1024));
  const block = new HeaderBlock(16 * 1024, () => ofProxies)
  block.begin(1, flags.endStream, Buffer.alloc(16 * 1024))
  for (let i = 0; i < 4; i++) block.add(Buffer.alloc(16 * 1024))
  expect(block.take()).toHaveLength(80 * 1024)
})

class FakeSocket extends Duplex {
  override _read(): void {
    // The test passes input to the connection directly.
  }
  override _write(_: unknown, __: unknown, callback: () => void): void {
    callback()
  }
}

test.each<[string, (connection: Http2Connection, socket: Duplex) => unknown]>([
  ['the client closes', (_, socket) => once(socket.destroy(), 'close')],
  ['the gateway closes', (connection) => connection.closeNow()],
  ['a frame is wrong', (connection) => connection.read(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))],
  ['the block is complete', (connection) => connection.read(frame(frameTypes.continuation, endHeaders, 1))],
])('the memory of a large block is given back when %s', async (_, end) => {
  const oversizeMemory = new OversizeMemory(64 * 1024)
  const socket = new FakeSocket()
  const nothing = (): undefined => undefined
  const connection = new Http2Connection(socket as unknown as Socket, {
    maxHeaderBytes: 16 * 1024,
    maxStreams: 100,
    sendMs: 10_000,
    now: () => 0,
    oversizeMemoryOf: () => oversizeMemory,
    isPressed: () => false,
    clientOf: () => '',
    serve: nothing,
    onHeadersTooLarge: nothing,
    onMalformed: nothing,
    onException: nothing,
  })
  connection.read(
    Buffer.concat([
      Buffer.from(preface),
      frame(frameTypes.settings, 0, 0),
      frame(frameTypes.headers, 0, 1, requestFields('GET', '/')),
      ...Array.from({ length: 3 }, () => frame(frameTypes.continuation, 0, 1, Buffer.alloc(16_000, 0x82))),
    ]),
  )
  expect(oversizeMemory.bytes).toBeGreaterThan(16_000)
  await end(connection, socket)
  expect(oversizeMemory.bytes).toBe(0)
  socket.destroy()
})
