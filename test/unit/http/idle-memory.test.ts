import { expect, test } from 'vitest'
import { RequestParser } from '../../../proxy/http/http1/parser/request-parser.ts'
import { PrefaceWatch } from '../../../proxy/http/http1/preface.ts'
import { FrameReader } from '../../../proxy/http/http2/frame-reader.ts'
import { HeaderBlock } from '../../../proxy/http/http2/header-block.ts'
import { HpackEncoder } from '../../../proxy/http/http2/hpack/encoder.ts'
import { collectGarbage } from '../../../shared/v8-gc.ts'

// V8 keeps the whole text in memory for a slice of it. Clients may leave ten thousand connections idle after a request with a large head.

const CONNECTIONS = 200
const HEAD_BYTES = 16_000
const MAX_KEPT_BYTES = 2_000

/** Bytes that each of the objects takes, its buffers included. */
function keptBytes(make: (i: number) => unknown): number {
  const kept: unknown[] = []
  const before = memoryUse()
  for (let i = 0; i < CONNECTIONS; i++) kept.push(make(i))
  return (memoryUse() - before) / kept.length
}

function memoryUse(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const ignore = (): undefined => undefined
const ignored = { onHead: ignore, onBody: ignore, onBodyEnd: ignore }
const unused = { onFrame: ignore, onDataFrame: ignore, onData: ignore, onDataEnd: ignore }

test.each([
  ['in one piece', HEAD_BYTES],
  ['in several pieces', 1_000],
])('the parser of an HTTP/1 connection keeps nothing of a head that arrived %s', (_how, pieceBytes) => {
  const kept = keptBytes((i) => {
    const parser = new RequestParser(ignored, { maxBytes: 2 * HEAD_BYTES, maxFields: 100 })
    const target = `/search?q=${'x'.repeat(HEAD_BYTES / 4)}`
    const fields = `Host: a\r\nX-Unusual-${i}: b\r\nCookie: ${'y'.repeat(HEAD_BYTES / 2)}\r\n`
    const head = Buffer.from(`GET ${target} HTTP/1.1\r\n${fields}\r\n`)
    for (let at = 0; at < head.length; at += pieceBytes) parser.execute(head.subarray(at, at + pieceBytes), 0)
    expect(parser.isInHead).toBe(false)
    return parser
  })
  expect(kept).toBeLessThan(MAX_KEPT_BYTES)
})

test.each([
  ['a long value', (text: string) => text],
  ['a short value out of a large head', (text: string) => text.slice(0, 40)],
])('the encoder of an HTTP/2 connection keeps little of a response with %s', (_what, valueOf) => {
  const kept = keptBytes((i) => {
    const encoder = new HpackEncoder()
    for (const response of ['first', 'second', 'third']) {
      const text = Buffer.from(`${i} ${response} ${'x'.repeat(HEAD_BYTES)}`).toString('latin1')
      encoder.encode(0, 302, ['location', valueOf(text), `x-${response}`, valueOf(text)])
    }
    return encoder
  })
  expect(kept).toBeLessThan(MAX_KEPT_BYTES)
})

// A short buffer of `Buffer.allocUnsafe`, `from` or `concat` is a part of a pool of 64 KiB.
test.each<[string, () => unknown]>([
  ['between two frames', () => new FrameReader({ ...unused, isClosed: false })],
  [
    'with a header block that has begun',
    () => {
      const block = new HeaderBlock(HEAD_BYTES)
      block.begin(1, 0, Buffer.alloc(20))
      return block
    },
  ],
  [
    'with a part of the preface',
    () => {
      const watch = new PrefaceWatch()
      watch.read(Buffer.from('PRI '))
      watch.read(Buffer.from('* HTTP'))
      return watch
    },
  ],
])('an HTTP/2 connection %s does not keep a shared buffer in memory', (_when, make) => {
  const kept = keptBytes(() => {
    const made = make()
    // What other connections take of the pool.
    for (let i = 0; i < 20; i++) Buffer.allocUnsafe(8 * 1024)
    return made
  })
  expect(kept).toBeLessThan(MAX_KEPT_BYTES)
})
