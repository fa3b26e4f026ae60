import fc from 'fast-check'
import { blanks, bytesAfter, changesOfMessages, content, oneToThree, replacing } from './changed-bytes.ts'

// Bytes that clients send, as Latin-1 text, one character a byte.

const value = fc.string({
  unit: fc.constantFrom(...Array.from('abXY09 \t,;:="/\\\x80\xe9\xff')),
  maxLength: 12,
})
const name = fc.constantFrom(
  ...['X-A', 'x-a', 'Host', 'Cookie', 'Accept', 'Content-Type', 'Date', 'Via', "!#$%&'*+-.^_`|~0"],
  ...['Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Content-Lengthy', 'Transfer-Encodings', 'Connect', 'Expect'],
)
const connection = fc.constantFrom('close', 'Keep-Alive, x-own', 'X-A', 'upgrade', 'content-length, ,x-own')
const field = fc
  .tuple(name, blanks, value, blanks)
  .map(([key, before, text, after]) => `${key}:${before}${text}${after}`)
const fields = fc.array(field, { maxLength: 3 })
const headFields = fc
  .tuple(fields, fc.option(connection.map((options) => `Connection: ${options}`)))
  .map(([lines, last]) => (last === null ? lines : [...lines, last]))

const method = fc.constantFrom(
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'PROPFIND',
  'M-SEARCH',
  'QUERY',
)
const target = fc.constantFrom('/', '/a?b=c', '*', 'http://h.example/a', '/%41;x', "/~!$&'()*+,;=:@")

const quoted = fc.constantFrom(';a', ';a=b', ';a="q;x"', ';a=b;c=d')
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

/** A head with the field that frames the body, if any, before, between or after the others. */
function headWith(minor: 0 | 1, framing: fc.Arbitrary<string | undefined>): fc.Arbitrary<string> {
  return fc
    .tuple(method, target, headFields, framing, fc.nat(4))
    .map(([verb, path, lines, line, at]) =>
      [
        `${verb} ${path} HTTP/1.${minor}`,
        ...(line === undefined ? lines : lines.toSpliced(at, 0, line)),
        '',
        '',
      ].join('\r\n'),
    )
}

const version = fc.constantFrom(0 as const, 1 as const, 1 as const, 1 as const)
const request = fc.oneof(
  version.chain((minor) => headWith(minor, fc.constant(undefined))),
  fc
    .tuple(version, content)
    .chain(([minor, body]) => headWith(minor, lengthOf(body)).map((head) => head + body)),
  fc.tuple(headWith(1, codings), chunks).map((parts) => parts.join('')),
)

/** One to three requests that RFC 9112 lets a client send. */
export const wellFormedRequests: fc.Arbitrary<string> = fc
  .array(fc.tuple(fc.constantFrom('', '', '\r\n', '\r\n\r\n'), request), { minLength: 1, maxLength: 3 })
  .map((all) => all.flat().join(''))

const lines = [
  ...[
    'Content-Length: 3',
    'Content-Length: 3, 3',
    'Content-Length: +3',
    'Content-Length: 0x3',
    'Content-Length:',
  ],
  ...['Content-Length : 3', 'Content-Length: 18446744073709551619', 'Content-Length: 9007199254740993'],
  ...[
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, identity',
  ],
  ...['Transfer-Encoding: xchunked', 'Transfer-Encoding:', 'Transfer-Encoding: chunked\t'],
  ...[
    'Transfer-Encoding\t: chunked',
    'Transfer-Encoding: ,chunked',
    'Transfer-Encoding: chunked,',
    'X-A: \x7f',
  ],
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
    'GET /b HTTP/1.1',
    'HTTP/1.1 200 OK',
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
const extensions = [
  ';',
  '; a',
  ' ;a',
  ';a =b',
  ';a= b',
  ';a="',
  ';\x01',
  ';a;',
  ';\xe9',
  '\t',
  ';a="\\""',
  ';="a"',
  ';a="b"c',
]
const parts = { lines, sizes, extensions }

const changes = fc.oneof(
  ...changesOfMessages(parts),
  fc
    .constantFrom(
      ' HTTP/1.2',
      ' HTTP/0.9',
      ' HTTP/2.0',
      ' RTSP/1.0',
      ' ICE/1.0',
      ' http/1.1',
      '  HTTP/1.1',
      '',
      ' ',
    )
    .map((words) => replacing(/ HTTP\/1\.[01]/g, () => words)),
  fc
    .constantFrom('get', 'GETX', 'CONNECT', 'PRI', 'SOURCE', 'FROB', ' GET', 'GET ')
    .map((verb) => replacing(/(?<=^|\n)[A-Z-]+(?= )/g, () => verb)),
  fc
    .constantFrom('a', '//', '', '\xe9', '/\x7f', '/ b', '/#a', '\\', 'http://', 'http:/a', '?', '/a\tb')
    .map((path) => replacing(/(?<= )[^ ]+(?= HTTP)/g, () => path)),
)

/** Requests with one to three changes, each of which may make them malformed. */
export const changedRequests: fc.Arbitrary<string> = fc
  .tuple(wellFormedRequests, oneToThree(changes))
  .map(([sent, change]) => change(sent))

const starts = [
  'GET / HTTP/1.1\r\n',
  'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n',
  'POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n',
  'GET ',
  '',
]
/** Arbitrary bytes, many of which begin like a request. */
export const arbitraryRequestBytes: fc.Arbitrary<string> = bytesAfter(starts, parts)
