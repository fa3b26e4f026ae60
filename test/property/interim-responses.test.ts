import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ResponseSyntaxError, type ResponseHead } from '../../proxy/http/upstream/response/response-head.ts'
import { ResponseParser } from '../../proxy/http/upstream/response/response-parser.ts'
import { interim, wellFormed, type BackendBytes } from '../support/random/response-bytes.ts'
import { runs } from '../support/random/runs.ts'

/*
 * Interim responses, with or without the empty line that some backends send after one, and the final response. They must read the same in
 * one piece, in two pieces cut anywhere (even within an empty line), and byte by byte.
 */

/** Two empty lines, and a lone CR, are errors no matter how they are cut. */
const after = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('', '\r\n') },
  fc.constantFrom('\n', '\r', '\r\n\r\n', '\n\r\n', '\n\n', '\r\r\n', ' '),
)
const sequences: fc.Arbitrary<BackendBytes> = fc
  .tuple(
    fc.array(fc.tuple(interim, after), { minLength: 1, maxLength: 3 }),
    wellFormed,
    fc.constantFrom('\r\n', '\n'),
  )
  .map(([before, last, lineEnd]) => ({
    ...last,
    bytes: before.map(([head, blank]) => head.replaceAll('\r\n', lineEnd) + blank).join('') + last.bytes,
  }))

/** The events of the parser, in order, with the pieces of a body joined. */
function read(pieces: readonly Buffer[], { method, closes }: BackendBytes): readonly unknown[] {
  const told: unknown[] = []
  let body = ''
  const tellHead = ({ status, fields, upgrade }: ResponseHead): unknown =>
    told.push({ status, fields, upgrade })
  const parser = new ResponseParser()
  parser.expect(method, {
    onInterimResponse: tellHead,
    onHead: tellHead,
    onBody: (chunk) => (body += chunk.toString('latin1')),
    onTrailers: (fields) => told.push({ trailers: fields }),
    onEnd: (persistent) => told.push({ body, persistent }),
    onUpgrade: tellHead,
  })
  if (!parser.untouched) told.push('touched before the first byte')
  try {
    for (const piece of pieces) {
      parser.execute(piece)
      if (parser.untouched) told.push('untouched')
    }
    if (closes) parser.finish()
  } catch (error) {
    if (!(error instanceof ResponseSyntaxError)) throw error
    told.push('refused')
  }
  return told
}

/** The positions, of these, at which a cut makes a difference. */
function differingPlaces(sent: BackendBytes, places: readonly number[]): readonly number[] {
  const bytes = Buffer.from(sent.bytes, 'latin1')
  const whole = read([bytes], sent)
  return places.filter(
    (at) => !isDeepStrictEqual(read([bytes.subarray(0, at), bytes.subarray(at)], sent), whole),
  )
}

test('interim responses, and the one after them, are read alike in whatever pieces they arrive', () => {
  fc.assert(
    fc.property(sequences, (sent) => {
      const bytes = Buffer.from(sent.bytes, 'latin1')
      expect(differingPlaces(sent, [...bytes.keys()].slice(1))).toEqual([])
      const each = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
      expect(read(each, sent)).toEqual(read([bytes], sent))
    }),
    { numRuns: runs(2_000) },
  )
})

const most = 64 * 1024
const start = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: '

test.each([
  ['the largest head', '', '\r\n\r\n'],
  ['the largest head after an interim response', 'HTTP/1.1 100 Continue\r\n\r\n\r\n', '\r\n\r\n'],
])('%s is read wherever it is cut', (_, before, end) => {
  const head = before + start + 'x'.repeat(most - start.length)
  const sent: BackendBytes = { method: 'GET', closes: false, bytes: head + end }
  expect(read([Buffer.from(sent.bytes)], sent).at(-1)).toEqual({ body: '', persistent: true })
  expect(differingPlaces(sent, [1, ...Array.from(end, (_each, at) => head.length + at)])).toEqual([])
  const larger: BackendBytes = { ...sent, bytes: `${head}x${end}` }
  expect(read([Buffer.from(larger.bytes)], larger).at(-1)).toBe('refused')
  expect(differingPlaces(larger, [1, ...Array.from(end, (_each, at) => head.length + at + 1)])).toEqual([])
})
