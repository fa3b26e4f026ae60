import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RequestParser } from '../../../../proxy/http/http1/parser/request-parser.ts'

type Chunk = { readonly content: string; readonly extension: string }

const head = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
const encode = ({ content, extension }: Chunk): string =>
  `${content.length.toString(16)}${extension}\r\n${content}\r\n`

/** Reads a request that arrives in these pieces. Returns the pieces of its body that were passed on. */
function read(pieces: Iterable<Buffer>): { bodies: string[]; reads: number; ended: boolean } {
  const bodies: string[] = []
  let ended = false
  let reads = 0
  const parser = new RequestParser(
    {
      onHead: () => undefined,
      onBody: (piece) => void bodies.push(piece.toString('latin1')),
      onBodyEnd: () => void (ended = true),
    },
    { maxBytes: 16 * 1024, maxFields: 100 },
  )
  for (const piece of pieces) {
    reads++
    for (let at = 0; at < piece.length;) at = parser.execute(piece, at)
  }
  return { bodies, reads, ended }
}

function* cut(bytes: Buffer, lengths: readonly number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length] ?? 1
    yield bytes.subarray(at, at + length)
    at += length
  }
}

const chunk = fc.record({
  content: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('x', '\r', '\n', '0') },
    fc.string({ minLength: 1, maxLength: 700, unit: 'binary-ascii' }),
  ),
  extension: fc.oneof({ weight: 3, arbitrary: fc.constant('') }, fc.constantFrom(';a', ';a=b', ';a="b;c"')),
})

describe('a chunked body', () => {
  test('a chunked body is passed on once for each read, however many chunks the read contains', () => {
    fc.assert(
      fc.property(
        fc.array(chunk, { minLength: 1, maxLength: 300 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 70_000 })), {
          minLength: 1,
        }),
        (chunks, lengths) => {
          const bytes = Buffer.from(`${head}${chunks.map(encode).join('')}0\r\n\r\n`, 'latin1')
          const { bodies, reads, ended } = read(cut(bytes, lengths))
          expect(ended).toBe(true)
          expect(bodies.join('')).toBe(chunks.map(({ content }) => content).join(''))
          expect(bodies.every((body) => body.length > 0)).toBe(true)
          expect(bodies.filter((body) => body.length < 4_096).length).toBeLessThanOrEqual(reads)
        },
      ),
    )
  })

  test('a chunked body keeps the bytes that came before an error in the same read', () => {
    const bodies: string[] = []
    const parser = new RequestParser(
      {
        onHead: () => undefined,
        onBody: (piece) => void bodies.push(piece.toString()),
        onBodyEnd: () => undefined,
      },
      { maxBytes: 16 * 1024, maxFields: 100 },
    )
    expect(() => parser.execute(Buffer.from(`${head}1\r\na\r\n1\r\nb\r\nx\r\n`), 0)).toThrow(
      'invalid chunk size',
    )
    expect(bodies).toEqual(['ab'])
  })
})

/** Reads this many chunks, in reads of the usual size. */
const readMany = (chunk: string, count: number): unknown =>
  read([Buffer.from(head), ...cut(Buffer.from(chunk.repeat(count), 'latin1'), [64 * 1024])])

describe('the framing of a chunked body', () => {
  test.each([
    ['chunks of one byte', '1\r\nx\r\n'],
    ['chunks of one byte with short extensions', '1;a=bcdef\r\nx\r\n'],
    ['sizes of four digits', '0001\r\nx\r\n'],
    ['events of a few bytes', 'c\r\ndata: token\n\r\n'],
    ['signed chunks of a kilobyte', `400;chunk-signature=${'a'.repeat(64)}\r\n${'x'.repeat(1024)}\r\n`],
    ['long extensions of long chunks', `8000;a=${'b'.repeat(16_000)}\r\n${'x'.repeat(32_768)}\r\n`],
  ])('may exceed it for ever by as much as %s take', (_, piece) => {
    expect(() => readMany(piece, Math.ceil(4_000_000 / piece.length))).not.toThrow()
  })

  test.each([
    ['extensions', `1;a=${'b'.repeat(100)}\r\nx\r\n`],
    ['quoted extensions', `1;a="${'b'.repeat(100)}"\r\nx\r\n`],
    ['many extensions', `1${';a'.repeat(50)}\r\nx\r\n`],
    ['zeros before the size', `${'0'.repeat(1_000)}1\r\nx\r\n`],
    ['the extension of a few chunks', `1;a=${'b'.repeat(10_000)}\r\nx\r\n`],
  ])('may not exceed it by 16 KiB and more: %s', (_, piece) => {
    const count = Math.ceil(20_000 / piece.length) + 1
    expect(() => readMany(piece, count)).toThrow('too many bytes in chunk sizes and extensions')
  })
})
