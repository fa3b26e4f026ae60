import fc from 'fast-check'
import { blanks, bytesAfter, changesOfMessages, content, oneToThree, replacing } from './changed-bytes.ts'

/** The bytes that a backend sends on one connection in response to one request. */
export type BackendBytes = {
  /** The method of the request. */
  readonly method: 'GET' | 'HEAD'
  /** Latin-1 text, one character a byte. */
  readonly bytes: string
  /** Whether the backend ends the connection after the bytes. */
  readonly closes: boolean
}

const reason = fc.constantFrom('', ' ', ' OK', ' \xe9t\xe9', ' two  words\t')
const value = fc.string({
  unit: fc.constantFrom(...Array.from('abXY09 \t,;:="/\\\x80\xe9\xff')),
  maxLength: 12,
})
const name = fc.constantFrom(
  ...['X-A', 'x-a', 'X-Own', 'ETag', 'Set-Cookie', 'Content-Type', 'Date', 'Via', "!#$%&'*+-.^_`|~0"],
  ...['Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Content-Lengthy', 'Transfer-Encodings', 'Connect'],
)
const connection = fc.constantFrom('close', 'Keep-Alive, x-own', 'X-A', 'upgrade', 'content-length, ,x-own')

const field = fc
  .tuple(name, blanks, value, blanks)
  .map(([key, before, text, after]) => `${key}:${before}${text}${after}`)
const fields = fc.array(field, { maxLength: 3 })
const finalFields = fc
  .tuple(fields, fc.option(connection.map((options) => `Connection: ${options}`)))
  .map(([lines, last]) => (last === null ? lines : [...lines, last]))

function head(version: 0 | 1, status: number, phrase: string, lines: readonly string[]): string {
  return [`HTTP/1.${version} ${status}${phrase}`, ...lines, '', ''].join('\r\n')
}

export const interim = fc
  .tuple(fc.constantFrom(100, 102, 103, 199), reason, fields)
  .map(([status, phrase, lines]) => head(1, status, phrase, lines))

const quoted = fc.constantFrom(';a', ';a=b', ';a="q \\" \xe9;\t"', ';a=b;c="";d')
const chunk = fc
  .tuple(content, fc.constantFrom('', '0', '000'), fc.boolean(), fc.option(quoted))
  .filter(([data]) => data !== '')
  .map(([data, zeros, isUpper, extension]) => {
    const digits = data.length.toString(16)
    return `${zeros}${isUpper ? digits.toUpperCase() : digits}${extension ?? ''}\r\n${data}\r\n`
  })
const chunks = fc
  .tuple(fc.array(chunk, { maxLength: 3 }), fc.constantFrom('0', '000', '0;a'), fields)
  .map(([before, last, trailers]) =>
    [...before, last + '\r\n', ...trailers.map((line) => line + '\r\n'), '\r\n'].join(''),
  )

type Framed = Pick<BackendBytes, 'bytes' | 'method'> & { readonly mustClose?: boolean }

const status = fc.constantFrom(200, 205, 206, 404, 500, 599, 999)
const version = fc.constantFrom(0 as const, 1 as const)
const codings = fc.constantFrom(
  'Transfer-Encoding: chunked',
  'transfer-encoding:CHUNKED ',
  'Transfer-Encoding:  Chunked',
)
const lengthOf = (body: string): fc.Arbitrary<string> =>
  fc.constantFrom(
    `Content-Length: ${body.length}`,
    `content-length:00${body.length}\t`,
    `CONTENT-LENGTH:\t${body.length} `,
  )

/** A head with the field that frames the content before, between or after the others. */
function framedHead(minor: 0 | 1, code: number, framing: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(reason, finalFields, framing, fc.nat(4))
    .map(([phrase, lines, line, at]) => head(minor, code, phrase, lines.toSpliced(at, 0, line)))
}

const byLength: fc.Arbitrary<Framed> = fc
  .tuple(version, status, content)
  .chain(([minor, code, body]) => framedHead(minor, code, lengthOf(body)).map((text) => text + body))
  .map((bytes) => ({ bytes, method: 'GET' }))
const inChunks: fc.Arbitrary<Framed> = status
  .chain((code) => fc.tuple(framedHead(1, code, codings), chunks))
  .map((parts) => ({ bytes: parts.join(''), method: 'GET' }))
const untilClose: fc.Arbitrary<Framed> = fc
  .tuple(version, status, reason, finalFields, content)
  .map(([minor, code, phrase, lines, body]) => ({
    bytes: head(minor, code, phrase, lines) + body,
    method: 'GET',
    mustClose: true,
  }))
const withoutContent: fc.Arbitrary<Framed> = fc.oneof(
  fc.tuple(version, reason, finalFields).map(([minor, phrase, lines]): Framed => ({
    bytes: head(minor, 204, phrase, lines),
    method: 'GET',
  })),
  framedHead(1, 304, lengthOf('hello')).map((bytes): Framed => ({ bytes, method: 'GET' })),
  status
    .chain((code) => framedHead(1, code, fc.oneof(lengthOf('hello'), codings)))
    .map((bytes): Framed => ({ bytes, method: 'HEAD' })),
)

/** Responses that RFC 9112 lets a server send, after any interim responses. */
export const wellFormed: fc.Arbitrary<BackendBytes> = fc
  .tuple(
    fc.array(interim, { maxLength: 2 }),
    fc.oneof(byLength, inChunks, untilClose, withoutContent),
    fc.boolean(),
  )
  .map(([before, { bytes, method, mustClose }, closes]) => ({
    method,
    bytes: before.join('') + bytes,
    closes: mustClose ?? closes,
  }))

const lines = [
  ...[
    'Content-Length: 3',
    'Content-Length: 3, 3',
    'Content-Length: +3',
    'Content-Length: 0x3',
    'Content-Length:',
  ],
  ...['Content-Length : 3', 'Content-Length: 18446744073709551619', 'Transfer-Encoding: chunked'],
  ...[
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: xchunked',
  ],
  ...['Transfer-Encoding:', 'Transfer-Encoding: chunked\t', 'Transfer-Encoding\t: chunked', 'X-A: \x7f'],
  ...[
    ' X-A: folded',
    '\tfolded',
    ' ',
    ': no name',
    'no colon',
    'X-\0: b',
    'X-A: \0',
    'X-A: b\rX-B: c',
    '\xe9: b',
  ],
  ...[
    'Connection: close',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'HTTP/1.1 200 OK',
    'HTTP/1.1 101 Up',
    '0',
    '',
  ],
]
const sizes = [
  '0',
  '1',
  'f',
  'fffffffffffff',
  'ffffffffffffffff',
  '10000000000000000',
  '0x1',
  '-1',
  '',
  ' 1',
  '1 ',
]
const extensions = [';', '; a', ' ;a', ';a =b', ';a= b', ';a="', ';\x01', ';a;', ';\xe9', '\t']
const parts = { lines, sizes, extensions }

const changes = fc.oneof(
  ...changesOfMessages(parts),
  fc
    .constantFrom('HTTP/1.0 ', 'HTTP/1.2 ', 'HTTP/0.9 ', 'HTTP/2.0 ', 'RTSP/1.0 ', 'http/1.1 ', 'HTTP/1.1\t')
    .map((start) => replacing(/HTTP\/1\.[01] /g, () => start)),
  fc
    .constantFrom('100', '101', '199', '204', '304', '099', '1000', '20')
    .map((code) => replacing(/(?<=HTTP\/1\.[01] )\d{3}/g, () => code)),
)

/** Responses with one to three changes, each of which may make them malformed. */
export const changed: fc.Arbitrary<BackendBytes> = fc
  .tuple(wellFormed, oneToThree(changes), fc.boolean())
  .map(([sent, change, closes]) => ({
    ...sent,
    bytes: change(sent.bytes),
    closes: sent.closes || closes,
  }))

const starts = [
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 103 \r\n',
  '',
]
/** Arbitrary bytes, many of which begin like a response. */
export const arbitraryBytes: fc.Arbitrary<BackendBytes> = fc.record({
  method: fc.constantFrom('GET', 'HEAD'),
  bytes: bytesAfter(starts, parts),
  closes: fc.boolean(),
})
