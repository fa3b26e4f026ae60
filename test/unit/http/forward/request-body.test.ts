import { Socket } from 'node:net'
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { RetryBuffer } from '../../../../proxy/http/forward/body/retry-buffer.ts'
import { RequestBody } from '../../../../proxy/http/forward/body/request-body.ts'
import { Http2Request } from '../../../../proxy/http/http2/request.ts'
import type { UpstreamChannel } from '../../../../proxy/http/upstream/exchange.ts'
import { upstreamRequest } from '../../../support/http/upstream-request.ts'

const READ_BYTES = 64 * 1024

/** A small part of a read, like a frame with one byte of content. */
function partOfRead(text: string): Buffer {
  const read = Buffer.alloc(READ_BYTES)
  read.write(text, 7, 'latin1')
  return read.subarray(7, 7 + text.length)
}

function channelTo(stream: Writable): UpstreamChannel {
  const channel = {
    writeHead: () => stream,
    write: (piece: Buffer) => void stream.write(piece),
    ...{ endBody: () => undefined, bodyStalled: () => undefined },
  }
  return channel as Partial<UpstreamChannel> as UpstreamChannel
}

/** The bytes of memory that the pieces keep alive. */
function memoryOf(pieces: readonly Buffer[]): number {
  return [...new Set(pieces.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)
}

describe('the body of a request', () => {
  test.each([
    ['that is kept until the backend has begun with it', 0],
    ['that the backend does not take', 1024 * 1024],
  ])('%s keeps little more memory than its bytes, whatever it came with', async (_, before) => {
    const request = new Http2Request(
      { socket: new Socket(), onConsumed: () => undefined },
      { method: 'POST', path: '/', headers: [], contentLength: undefined },
      true,
    )
    const stream = new Writable({ write: () => undefined, highWaterMark: before + 16 * 1024 })
    const write = vi.spyOn(stream, 'write')
    const body = new RequestBody(
      request,
      0,
      { isWantedBy: () => true, overLimit: () => undefined },
      undefined,
      '192.0.2.1',
    )
    body.sendTo(channelTo(stream), upstreamRequest({ hasBody: true }))
    await new Promise<void>((resolve) => process.nextTick(resolve))
    // More than the gateway keeps for a retry.
    if (before > 0) request.onBody(Buffer.alloc(before))
    const pieces = Array.from({ length: 100 }, (_each, i) => String(i % 10))
    for (const piece of pieces) request.onBody(partOfRead(piece))
    const written = write.mock.calls.map(([piece]) => piece as Buffer)
    const small = written.filter(({ length }) => length === 1)
    expect(Buffer.concat(small).toString()).toBe(pieces.join(''))
    expect(memoryOf(small)).toBe(pieces.length)
    expect(body.isRetryable).toBe(before === 0)
    body.release()
  })

  test.each([0, 1, 3])(
    'loses nothing that comes between a failed connection and the next, after %i pieces',
    async (count) => {
      const request = new Http2Request(
        { socket: new Socket(), onConsumed: () => undefined },
        { method: 'POST', path: '/', headers: ['content-length', '100'], contentLength: 100 },
        true,
      )
      const hooks = { isWantedBy: () => true, overLimit: () => undefined }
      const body = new RequestBody(request, 0, hooks, undefined, '192.0.2.1')
      const begin = (): { failing: Writable; text: () => string } => {
        const written: string[] = []
        const failing = new Writable({
          write: (chunk: Buffer, _encoding, done) => {
            written.push(chunk.toString('latin1'))
            done()
          },
        })
        // The connection learns of the error first, and its request must be sent again over another connection.
        failing.on('error', () => body.pauseForRetry())
        body.sendTo(channelTo(failing), upstreamRequest({ hasBody: true }))
        return { failing, text: () => written.join('') }
      }
      const first = begin()
      for (let i = 0; i < count; i++) request.onBody(Buffer.from(String(i)))
      await new Promise<void>((resolve) => process.nextTick(resolve))
      first.failing.emit('error', new Error('ECONNRESET'))
      request.onBody(Buffer.from('meanwhile'))
      const second = begin()
      request.onBody(Buffer.from('after'))
      // The body is passed on in a later turn.
      await new Promise<void>((resolve) => process.nextTick(resolve))
      const sent = ['0', '1', '2'].slice(0, count).concat('meanwhile', 'after').join('')
      expect(second.text()).toBe(sent)
      body.release()
    },
  )

  test('the body of a request is kept in order, in as much memory as it needs, up to 64 KiB', () => {
    const piece = fc.oneof(
      fc.constantFrom('a', 'b'),
      fc.integer({ min: 1, max: 20_000 }).map((length) => 'c'.repeat(length)),
    )
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 60 }), (texts) => {
        const kept = new RetryBuffer('192.0.2.1')
        let expected = ''
        for (const text of texts) {
          const hasRoom = expected.length + text.length <= 64 * 1024
          expect(kept.add(Buffer.from(text))).toBe(hasRoom)
          if (!hasRoom) {
            expect(kept.pieces).toEqual([])
            return
          }
          expected += text
          expect(kept.pieces.length).toBeLessThanOrEqual(2)
          expect(Buffer.concat(kept.pieces).toString()).toBe(expected)
        }
        kept.release()
        expect(kept.pieces).toEqual([])
      }),
    )
  })

  test('one client takes half of the memory for retries, many clients no more than all, and bodies give it back', () => {
    const keep = (clients: readonly string[]): number[] => {
      const kept: RetryBuffer[] = []
      const counts = clients.map((client) => {
        const bodies = Array.from({ length: 257 }, () => new RetryBuffer(client))
        kept.push(...bodies)
        return bodies.filter((body) => body.add(Buffer.alloc(64 * 1024))).length
      })
      for (const body of kept) body.release()
      return counts
    }
    for (let round = 0; round < 3; round++) {
      expect(keep(['192.0.2.1'])).toEqual([128])
      expect(keep(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'])).toEqual([128, 64, 32, 16])
      const counts = keep(Array.from({ length: 20 }, (_, i) => `192.0.2.${i}`))
      expect(counts.reduce((sum, count) => sum + count)).toBe(255)
    }
  })
})
