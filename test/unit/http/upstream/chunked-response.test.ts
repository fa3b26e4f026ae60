import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ResponseParser } from '../../../../proxy/http/upstream/response/response-parser.ts'

type Chunk = { readonly content: string; readonly extension: string }

const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const encode = ({ content, extension }: Chunk): string =>
  `${content.length.toString(16)}${extension}\r\n${content}\r\n`

/** Reads a response that arrives in pieces of these lengths, in turn. Returns the pieces that were passed on, in order. */
function read(text: string, lengths: readonly number[]): { given: string[]; reads: number } {
  const given: string[] = []
  const parser = new ResponseParser()
  parser.expect('GET', {
    onInterimResponse: () => undefined,
    onHead: () => undefined,
    onBody: (piece) => void given.push(piece.toString('latin1')),
    onTrailers: (fields) => void given.push(`trailers ${fields.join(' ')}`),
    onEnd: () => void given.push('end'),
    onUpgrade: () => undefined,
  })
  const bytes = Buffer.from(text, 'latin1')
  let reads = 0
  for (let at = 0; at < bytes.length; reads++) {
    const length = lengths[reads % lengths.length] ?? 1
    parser.execute(bytes.subarray(at, at + length))
    at += length
  }
  return { given, reads }
}

const chunk = fc.record({
  content: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('x', '\r', '\n', '0') },
    fc.string({ minLength: 1, maxLength: 700, unit: 'binary-ascii' }),
  ),
  extension: fc.oneof({ weight: 3, arbitrary: fc.constant('') }, fc.constantFrom(' ', ';a=b', ';a="b;c"')),
})

describe('a chunked response', () => {
  test('a chunked response is passed on once for each read, however many chunks the read contains', () => {
    fc.assert(
      fc.property(
        fc.array(chunk, { minLength: 1, maxLength: 300 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 70_000 })), {
          minLength: 1,
        }),
        (chunks, lengths) => {
          const text = `${head}${chunks.map(encode).join('')}0\r\nx-a: b\r\n\r\n`
          const { given, reads } = read(text, lengths)
          expect(given.slice(-2)).toEqual(['trailers x-a b', 'end'])
          const bodies = given.slice(0, -2)
          expect(bodies.join('')).toBe(chunks.map(({ content }) => content).join(''))
          expect(bodies.filter((body) => body.length < 4_096).length).toBeLessThanOrEqual(reads)
        },
      ),
    )
  })

  test('of long chunks is not copied', () => {
    const bytes = Buffer.from(`${head}2000\r\n${'x'.repeat(8192)}\r\n`)
    const given: Buffer[] = []
    const parser = new ResponseParser()
    const nothing = (): undefined => undefined
    parser.expect('GET', {
      ...{
        onInterimResponse: nothing,
        onHead: nothing,
        onTrailers: nothing,
        onEnd: nothing,
        onUpgrade: nothing,
      },
      onBody: (piece) => void given.push(piece),
    })
    parser.execute(bytes)
    expect(given.map(({ buffer, length }) => [buffer === bytes.buffer, length])).toEqual([[true, 8192]])
  })

  test.each([
    ['a byte each', '1\r\nx\r\n'],
    ['a byte each, with extensions', '1;a=b\r\nx\r\n'],
    ['a byte each, with sizes that are filled up', '00000001 \r\nx\r\n'],
    ['tokens', 'c\r\ndata: token\n\r\n'],
  ])('a chunked response may be in chunks of %s for ever', (_, piece) => {
    expect(() => read(head + piece.repeat(200_000), [65_536])).not.toThrow()
  })

  test('a chunked response may not consist of extensions', () => {
    expect(() => read(head + `1;${'a'.repeat(900)}\r\nx\r\n`.repeat(20), [65_536])).toThrow(
      'too many bytes in chunk sizes and extensions',
    )
  })
})
