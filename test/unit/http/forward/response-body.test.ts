import { expect, test } from 'vitest'
import { ResponseBody } from '../../../../proxy/http/forward/body/response-body.ts'
import type { ClientResponse } from '../../../../proxy/http/message/client-response.ts'

/** A response whose client reads nothing until `hasRoom`. */
class SlowResponse {
  hasRoom = false
  onDrain: (() => void) | undefined
  readonly written: Buffer[] = []

  get writableNeedDrain(): boolean {
    return !this.hasRoom
  }

  write(piece: Buffer): boolean {
    this.written.push(piece)
    return this.hasRoom
  }
}

const makeReadAhead = () => ({ perResponseBytes: 2_000_000, totalBytes: 10_000_000, bufferedBytes: 0 })
const source = { pause: () => undefined, resume: () => undefined, maxWaitingBytes: 0, waitingBytes: 0 }

test('a buffered body is written in order, keeps little more memory than its bytes, and is counted', () => {
  const response = new SlowResponse()
  const readAhead = makeReadAhead()
  const body = new ResponseBody(response as unknown as ClientResponse, readAhead, source)
  const sizes = Array.from({ length: 200 }, (_, i) => 1 + ((i * 131) % 6_000))
  // Each piece is part of a larger buffer, like data read from a backend.
  for (const [i, bytes] of sizes.entries()) body.push(Buffer.alloc(65_536, i).subarray(0, bytes))
  const total = sizes.reduce((sum, bytes) => sum + bytes)
  expect([body.bufferedBytes, readAhead.bufferedBytes]).toEqual([total, total])
  response.hasRoom = true
  response.onDrain?.()
  const expected = Buffer.concat(sizes.map((bytes, i) => Buffer.alloc(bytes, i)))
  expect(Buffer.concat(response.written).equals(expected)).toBe(true)
  const memories = new Set(response.written.map(({ buffer }) => buffer))
  expect([...memories].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(1.5 * total)
  expect([body.bufferedBytes, readAhead.bufferedBytes]).toEqual([0, 0])
})

test('no buffered body is left when its client disconnects', () => {
  const readAhead = makeReadAhead()
  const body = new ResponseBody(new SlowResponse() as unknown as ClientResponse, readAhead, source)
  body.push(Buffer.alloc(5_000))
  body.push(Buffer.alloc(100))
  body.drop()
  expect([body.bufferedBytes, readAhead.bufferedBytes]).toEqual([0, 0])
})

test('the bytes that the source keeps of a response are counted, and leave room for fewer further ones', () => {
  let pauses = 0
  const readAhead = { ...makeReadAhead(), perResponseBytes: 100_000 }
  const keeping = { ...source, pause: () => pauses++, maxWaitingBytes: 60_000, waitingBytes: 50_000 }
  const body = new ResponseBody(new SlowResponse() as unknown as ClientResponse, readAhead, keeping)
  body.push(Buffer.alloc(30_000))
  expect([body.bufferedBytes, pauses]).toEqual([80_000, 0])
  body.push(Buffer.alloc(10_000))
  expect([body.bufferedBytes, pauses]).toEqual([90_000, 1])
})
