import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RequestParser } from '../../proxy/http/http1/parser/request-parser.ts'
import { RequestSyntaxError } from '../../proxy/http/http1/parser/syntax-error.ts'
import { runs } from '../support/random/runs.ts'

/*
 * The attack: a head, or trailers, without an end. Every byte and every field counts, no matter what the lines contain, so a client gets no
 * more memory than the limits allow.
 */

const limits = { maxBytes: 4096, maxFields: 100 }
const chunked = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'

const begins: Record<string, string> = {
  'a head': 'GET / HTTP/1.1\r\n',
  'a head after another request': 'GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n',
  trailers: `${chunked}0\r\n`,
  'trailers of a second request': `${chunked}0\r\nA: b\r\n\r\n${chunked}0\r\n`,
}

const name = fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,12}$/)
const value = fc.stringMatching(/^[\t\x20-\x7e]{0,8}$/)
const line = fc.oneof(
  fc.constantFrom('a:', 'a: ', 'Connection:', 'Cookie:'),
  fc.tuple(name, value).map(([before, after]) => `${before}:${after}`),
)
const pieceBytes = fc.oneof(fc.constantFrom(1, 2, 3, 64 * 1024), fc.integer({ min: 1, max: 9000 }))

/** The number of bytes that the parser accepts until it refuses, and the error message. */
function bytesUntilRefused(bytes: Buffer, pieceLength: number): { taken: number; message: string } {
  const parser = new RequestParser(
    { onHead: () => undefined, onBody: () => undefined, onBodyEnd: () => undefined },
    limits,
  )
  let taken = 0
  try {
    for (; taken < bytes.length; taken += pieceLength) {
      const piece = bytes.subarray(taken, taken + pieceLength)
      for (let at = 0; at < piece.length;) at = parser.execute(piece, at)
    }
  } catch (error) {
    if (error instanceof RequestSyntaxError && error.fault === 'head-size')
      return { taken, message: error.message }
    throw error
  }
  return { taken, message: '' }
}

test.each(Object.keys(begins))('%s that never ends is refused where the limits are', (what) => {
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 5 }), pieceBytes, (lines, pieceLength) => {
      // Two lengths would be refused for that alone.
      fc.pre(!lines.some((text) => /^(?:content-length|transfer-encoding):/i.test(text)))
      const begin = begins[what] ?? ''
      const unit = `${lines.join('\r\n')}\r\n`
      const endless = begin + unit.repeat(Math.ceil((4 * limits.maxBytes) / unit.length))
      const { taken, message } = bytesUntilRefused(Buffer.from(endless, 'latin1'), pieceLength)
      expect(message).toMatch(/^(?:the head or the trailers are too large |too many headers)/)
      expect(taken).toBeLessThanOrEqual(begin.length + limits.maxBytes)
      // A name, a colon and CRLF are four bytes.
      expect(taken + pieceLength).toBeGreaterThan(Math.min(limits.maxBytes, 4 * limits.maxFields))
    }),
    { numRuns: runs(1000) },
  )
})
