import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ClientRequest } from '../../../../proxy/http/message/client-request.ts'
import { Http2Response } from '../../../../proxy/http/http2/response.ts'

const stream = {
  isBacklogged: false,
  enqueue: () => undefined,
  sendInterimResponse: () => undefined,
  reset: () => undefined,
  destroyConnection: () => undefined,
}

const makeResponse = (): Http2Response => new Http2Response(stream, {} as unknown as ClientRequest)

/** A piece of a larger buffer, like data read from a backend. */
const partOf = (memoryBytes: number, bytes: number, fill = 0): Buffer =>
  Buffer.alloc(memoryBytes, fill).subarray(0, bytes)

function take(response: Http2Response, bytes: number): Buffer[] {
  const taken: Buffer[] = []
  response.takeBody(bytes, taken)
  return taken
}

/** The bytes of memory that the pieces keep alive. */
const keptBy = (pieces: readonly Buffer[]): number => {
  const memories = new Set(pieces.map(({ buffer }) => buffer))
  return [...memories].reduce((sum, { byteLength }) => sum + byteLength, 0)
}

test('pieces are sent in their order, whatever is pending in between', () => {
  const step = fc.oneof(
    fc.record({ give: fc.integer({ min: 0, max: 9_000 }), of: fc.constantFrom(9_000, 65_536) }),
    fc.record({ take: fc.integer({ min: 0, max: 12_000 }) }),
    fc.constant({ wait: true } as const),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const response = makeResponse()
      const given: Buffer[] = []
      const taken: Buffer[] = []
      for (const [i, done] of steps.entries()) {
        if ('give' in done) {
          given.push(partOf(done.of, done.give, i))
          response.write(partOf(done.of, done.give, i))
        } else if ('take' in done) taken.push(...take(response, Math.min(done.take, response.pendingBytes)))
        else response.detachPending()
      }
      taken.push(...take(response, response.pendingBytes))
      expect(response.pendingBytes).toBe(0)
      expect(Buffer.concat(taken).equals(Buffer.concat(given))).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('a short pending piece does not keep the buffer that it is a part of', () => {
  const response = makeResponse()
  response.end(partOf(65_536, 100))
  response.detachPending()
  expect(keptBy(take(response, 100))).toBe(100)
})

test('many short pending pieces, one in each turn, do not keep their buffers', () => {
  const response = makeResponse()
  for (let i = 0; i < 1_000; i++) {
    response.write(partOf(65_536, 10))
    response.detachPending()
  }
  expect(keptBy(take(response, 10_000))).toBeLessThan(16 * 1024)
})

test('the pending end of a large piece does not keep its buffer', () => {
  const response = makeResponse()
  response.end(Buffer.alloc(65_536))
  take(response, 65_000)
  response.detachPending()
  expect(keptBy(take(response, 536))).toBe(536)
})

test('a large piece is not copied', () => {
  const response = makeResponse()
  const piece = Buffer.alloc(65_536)
  response.write(piece)
  response.detachPending()
  expect(take(response, 65_536).map(({ buffer }) => buffer)).toEqual([piece.buffer])
})

test('a client that does not read gets no interim responses', () => {
  const sent: number[] = []
  const sendInterimResponse = (status: number): void => void sent.push(status)
  for (const isBacklogged of [true, false]) {
    const response = new Http2Response(
      { ...stream, isBacklogged, sendInterimResponse },
      {} as unknown as ClientRequest,
    )
    response.writeInterimResponse(102, [])
    response.writeContinue()
  }
  expect(sent).toEqual([100, 102, 100])
})
