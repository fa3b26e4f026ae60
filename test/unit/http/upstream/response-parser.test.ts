import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ResponseSyntaxError,
  type ResponseHead,
} from '../../../../proxy/http/upstream/response/response-head.ts'
import { ResponseParser } from '../../../../proxy/http/upstream/response/response-parser.ts'

type Seen = {
  heads: ResponseHead[]
  interim: number[]
  body: string
  ended: boolean[]
  rest: string | undefined
}

/** Feeds one response to a parser in the given pieces and returns the result. */
function parse(pieces: readonly string[], method = 'GET', closed = false): Seen {
  const seen: Seen = { heads: [], interim: [], body: '', ended: [], rest: undefined }
  const parser = new ResponseParser()
  parser.expect(method, {
    onInterimResponse: (head) => seen.interim.push(head.status),
    onHead: (head) => seen.heads.push(head),
    onBody: (chunk) => (seen.body += chunk.toString('latin1')),
    onEnd: (persistent) => seen.ended.push(persistent),
    onTrailers: () => undefined,
    onUpgrade: (head, rest) => {
      seen.heads.push(head)
      seen.rest = rest.toString('latin1')
    },
  })
  for (const piece of pieces) parser.execute(Buffer.from(piece, 'latin1'))
  if (closed) parser.finish()
  return seen
}

const ok = 'HTTP/1.1 200 OK\r\n'

/** A response with no content but with a trailer. */
function lastChunk(trailer: string): string {
  return `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n${trailer}\r\n\r\n`
}

describe('valid responses', () => {
  test.each([
    ['a length', `${ok}Content-Length: 5\r\n\r\nhello`, 'hello', [true]],
    ['a length of zero', `${ok}Content-Length: 0\r\n\r\n`, '', [true]],
    ['the same length twice', `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`, 'hi', [true]],
    [
      'sizes with many zeros, as some servers write them to a fixed width',
      `${ok}Transfer-Encoding: chunked\r\n\r\n00000000000003\r\nabc\r\n${'0'.repeat(900)}2\r\nde\r\n${'0'.repeat(16)}\r\n\r\n`,
      'abcde',
      [true],
    ],
    ['a trailer of 60 KB', lastChunk(`X: ${'x'.repeat(60_000)}`), '', [true]],
    [
      'chunks',
      `${ok}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n`,
      'abcde',
      [true],
    ],
    [
      'chunks and trailers',
      `${ok}Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n`,
      'a',
      [true],
    ],
    ['close', `${ok}Connection: close\r\nContent-Length: 1\r\n\r\na`, 'a', [false]],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na', 'a', [false]],
    [
      'HTTP/1.0 that goes on',
      'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na',
      'a',
      [true],
    ],
    ['no reason', 'HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na', 'a', [true]],
    ['no content', 'HTTP/1.1 204 No Content\r\n\r\n', '', [true]],
    ['not modified, with a length', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n', '', [true]],
    ['until close', `${ok}\r\nall there is`, 'all there is', []],
  ])('%s', (_, text, body, ended) => {
    expect(parse([text])).toMatchObject({ body, ended })
  })

  test('a response to HEAD has no body whatever it declares', () => {
    expect(parse([`${ok}Content-Length: 9\r\n\r\n`], 'HEAD')).toMatchObject({ body: '', ended: [true] })
  })

  test('a body that ends with the connection is complete when that ends in order', () => {
    expect(parse([`${ok}\r\nall`], 'GET', true)).toMatchObject({ body: 'all', ended: [false] })
  })

  test('interim responses come before the final one', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok}Content-Length: 0\r\n\r\n`
    expect(parse([text])).toMatchObject({ interim: [100, 103], ended: [true] })
  })

  test('an upgrade passes on the bytes after its head', () => {
    const text =
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x01a'
    const seen = parse([text])
    expect(seen.heads[0]?.upgrade).toBe('websocket')
    expect(seen.rest).toBe('\x81\x01a')
  })

  test('fields of one hop, and those that Connection names, are taken out', () => {
    const fields =
      'Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=7\r\nTrailer: a\r\nX-Kept:  a b \r\n'
    const [head] = parse([`${ok}${fields}Set-Cookie: a\r\nset-cookie: b\r\nContent-Length: 0\r\n\r\n`]).heads
    expect(head?.fields).toEqual([
      'x-kept',
      'a b',
      'set-cookie',
      'a',
      'set-cookie',
      'b',
      'content-length',
      '0',
    ])
    expect(head?.keepAliveMs).toBe(7000)
  })
})

describe('invalid responses', () => {
  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n', 'invalid status line'],
    ['HTTP/2.0', 'HTTP/2.0 200 OK\r\n\r\n', 'invalid status line'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', 'invalid status line'],
    [
      'both framings',
      `${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      'both Content-Length and Transfer-Encoding',
    ],
    [
      'two lengths',
      `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
      'conflicting Content-Length headers',
    ],
    ['a list of lengths', `${ok}Content-Length: 1, 1\r\n\r\n`, 'invalid Content-Length'],
    ['a signed length', `${ok}Content-Length: +1\r\n\r\n`, 'invalid Content-Length'],
    ['an empty length', `${ok}Content-Length:\r\n\r\n`, 'invalid Content-Length'],
    ['gzip, chunked', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n`, 'unsupported Transfer-Encoding'],
    [
      'chunked twice',
      `${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
      'more than one Transfer-Encoding',
    ],
    [
      'chunked in 1.0',
      'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      'Transfer-Encoding in an HTTP/1.0 response',
    ],
    ['a folded line', `${ok}X: a\r\n b\r\n\r\n`, 'header line without a colon'],
    ['a folded line with a colon', `${ok}X: a\r\n b:c\r\n\r\n`, 'invalid header name'],
    ['a space before the colon', `${ok}X : a\r\n\r\n`, 'invalid header name'],
    ['no name', `${ok}: a\r\n\r\n`, 'invalid header name'],
    ['a bare LF', `${ok}X: a\nY: b\r\n\r\n`, 'invalid character in a header value'],
    ['lines that end in LF', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n', 'header line ends with a bare LF'],
    ['a bare CR', `${ok}X: a\rY: b\r\n\r\n`, 'invalid character in a header value'],
    ['a NUL', `${ok}X: a\0b\r\n\r\n`, 'invalid character in a header value'],
    ['a chunk size in words', `${ok}Transfer-Encoding: chunked\r\n\r\nten\r\n`, 'invalid chunk size'],
    ['a negative chunk size', `${ok}Transfer-Encoding: chunked\r\n\r\n-1\r\n`, 'invalid chunk size'],
    [
      'a chunk size of 14 digits',
      `${ok}Transfer-Encoding: chunked\r\n\r\n10000000000000\r\n`,
      'invalid chunk size',
    ],
    [
      'a longer chunk',
      `${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n`,
      'chunk longer than its declared size',
    ],
    ['chunks with LF', `${ok}Transfer-Encoding: chunked\r\n\r\n1\na\r\n`, 'line ends with a bare LF'],
    [
      'an endless extension',
      `${ok}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(1100)}`,
      'line longer than 1 KiB',
    ],
    ['an endless head', `${ok}X: ${'x'.repeat(70_000)}`, 'response head larger than 64 KiB'],
    [
      'endless trailers',
      `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(12_000)}`,
      'trailers larger than',
    ],
    ['a trailer that never ends', lastChunk(`X: ${'x'.repeat(70_000)}`), 'trailers larger than 64 KiB'],
    [
      'a chunk size of 14 digits and zeros',
      `${ok}Transfer-Encoding: chunked\r\n\r\n0010000000000000\r\n`,
      'invalid chunk size',
    ],
    [
      'endless zeros',
      `${ok}Transfer-Encoding: chunked\r\n\r\n${'0'.repeat(1_100)}`,
      'line longer than 1 KiB',
    ],
    ['a trailer without a colon', lastChunk('HTTP/1.1 200 OK'), 'trailer line without a colon'],
    ['a trailer without a name', lastChunk(': a'), 'invalid trailer name'],
    ['a space before the colon of a trailer', lastChunk('X : a'), 'invalid trailer name'],
    ['a folded trailer', lastChunk('X: a\r\n b:c'), 'invalid trailer name'],
    ['a NUL in a trailer', lastChunk('X: a\0'), 'invalid character in a trailer value'],
    ['a bare CR in a trailer', lastChunk('X: a\rY: b'), 'invalid character in a trailer value'],
    [
      'endless interim responses',
      'HTTP/1.1 103 Early\r\n\r\n'.repeat(50_000),
      'interim responses larger than 1 MiB',
    ],
    ['a second response', `${ok}Content-Length: 1\r\n\r\na${ok}`, 'unexpected data outside a response'],
    ['a body where none can be', `HTTP/1.1 204 No\r\n\r\nbody`, 'unexpected data outside a response'],
  ])('%s', (_, text, message) => {
    const run = (): unknown => parse([text])
    expect(run).toThrow(ResponseSyntaxError)
    expect(run).toThrow(message)
  })

  test('a body cut short is not complete', () => {
    expect(parse([`${ok}Content-Length: 5\r\n\r\nhell`], 'GET', true).ended).toEqual([])
    expect(parse([`${ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`], 'GET', true).ended).toEqual([])
  })
})

test('the pieces in which a response arrives change nothing', () => {
  const texts = [
    `${ok}Transfer-Encoding: chunked\r\n\r\n${'0'.repeat(30)}5\r\nhello\r\n6\r\n world\r\n0\r\nT: ${'x'.repeat(3_000)}\r\n\r\n`,
    `${ok}Content-Length: 11\r\nX-A: b\r\n\r\nhello world`,
    `HTTP/1.1 103 Early\r\nLink: a\r\n\r\n${ok}Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nT: x\r\n\r\n`,
    `${ok}Connection: close\r\n\r\nhello world`,
  ]
  fc.assert(
    fc.property(fc.constantFrom(...texts), fc.array(fc.nat(200), { maxLength: 30 }), (text, cuts) => {
      const places = [0, ...cuts.map((cut) => cut % text.length).sort((a, b) => a - b), text.length]
      const pieces = places.slice(1).map((end, i) => text.slice(places[i], end))
      expect(parse(pieces)).toEqual(parse([text]))
    }),
  )
})

/** The heads of responses to HEAD, each read after the previous one, with the error message in place of an invalid head. */
function headsOf(texts: readonly string[], parserOf: () => ResponseParser): (ResponseHead | string)[] {
  return texts.map((text) => {
    const heads: ResponseHead[] = []
    const parser = parserOf()
    const ignore = (): void => undefined
    const told = {
      onInterimResponse: ignore,
      onBody: ignore,
      onEnd: ignore,
      onTrailers: ignore,
      onUpgrade: ignore,
    }
    parser.expect('HEAD', { ...told, onHead: (head) => heads.push(head) })
    try {
      parser.execute(Buffer.from(text, 'latin1'))
    } catch (error) {
      if (!(error instanceof ResponseSyntaxError)) throw error
      return error.message
    }
    return heads[0] ?? 'nothing'
  })
}

test('earlier heads on the same connection do not affect the next one', () => {
  const first = fc.constantFrom(
    'HTTP/1.1 200 OK',
    'HTTP/1.1 404 Not Found',
    'HTTP/1.0 200 OK',
    'HTTP/1.1 20 OK',
  )
  const line = fc.constantFrom(
    ...['X-A: b', 'X-A: bc', 'X-A:b', 'x-a: b', 'X-A: b\r', 'X-A: b\n', 'X-A', ' X-A: b', 'X-A : b', ''],
    ...['Content-Length: 1', 'Content-Length: 2', 'Transfer-Encoding: chunked', 'Set-Cookie: a=b'],
    ...['Connection: close', 'Connection: keep-alive', 'Connection: x-a', 'Keep-Alive: timeout=5'],
    ...[`X-Long: ${'y'.repeat(5_000)}`, 'Upgrade: a', 'Trailer: X-A'],
  )
  const head = fc
    .tuple(first, fc.array(line, { maxLength: 4 }))
    .map(([status, lines]) => `${[status, ...lines].join('\r\n')}\r\n\r\n`)
  fc.assert(
    fc.property(fc.array(head, { maxLength: 8 }), (texts) => {
      const one = new ResponseParser()
      expect(headsOf(texts, () => one)).toEqual(headsOf(texts, () => new ResponseParser()))
    }),
    { numRuns: 2000 },
  )
})

test('the response parser throws only its own error, whatever the bytes', () => {
  const bit = fc.constantFrom(
    'HTTP/1.1 200 OK',
    '\r\n',
    '\n',
    ':',
    'Content-Length: 3',
    'Transfer-Encoding: chunked',
    '0',
    '5',
    ' ',
    'x',
    '\0',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(bit, fc.string({ maxLength: 4 })), { maxLength: 40 }), (bits) => {
      try {
        parse(bits)
      } catch (error) {
        expect(error).toBeInstanceOf(ResponseSyntaxError)
      }
    }),
    { numRuns: 2000 },
  )
})

/** The same bytes: whole, byte by byte, and cut in two at each position. */
function cuts(bytes: string): string[][] {
  return [[bytes], Array.from(bytes), ...Array.from(bytes, (_, at) => [bytes.slice(0, at), bytes.slice(at)])]
}

test('a head with a line that ends with LF alone is refused, wherever it is cut', () => {
  const plain = 'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\r\n'
  for (const head of [plain.replaceAll('\r', ''), plain.replace('\r', ''), plain.replace(/\r\n$/, '\n')])
    for (const pieces of cuts(`${head}hi`)) expect(() => parse(pieces)).toThrow(ResponseSyntaxError)
})

describe('an empty line after 100 Continue', () => {
  const final = `${ok}Content-Length: 2\r\n\r\nhi`

  test('an empty line after 100 Continue is skipped', () => {
    for (const pieces of cuts(`HTTP/1.1 100 Continue\r\n\r\n\r\n${final}`))
      expect(parse(pieces)).toMatchObject({ interim: [100], body: 'hi', ended: [true] })
  })

  test.each([
    ['two of them', `HTTP/1.1 100 Continue\r\n\r\n\r\n\r\n${final}`],
    ['one before any response', `\r\n${final}`],
    ['LF alone', `HTTP/1.1 100 Continue\r\n\r\n\n${final}`],
  ])('%s is an error', (_, bytes) => {
    for (const pieces of [[bytes], Array.from(bytes)])
      expect(() => parse(pieces)).toThrow(ResponseSyntaxError)
  })
})

test('the first bytes of an HTTP/2 server are recognized', () => {
  const settings = '\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64'
  for (const pieces of cuts(settings)) expect(() => parse(pieces)).toThrow('the backend answered with HTTP/2')
})
