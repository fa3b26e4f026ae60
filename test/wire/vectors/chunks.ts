import { because, brokenOff, chunked, forwarded, type Vector } from '../vector.ts'

const end = '0\r\n\r\n'
const cutShort = brokenOff(400, 'POST /a')
const seen = forwarded('POST /a hi')

/** RFC 9112 section 7.1: chunks. The gateway decodes them and writes its own. */
export const chunks: readonly Vector[] = [
  ...because('RFC 9112 section 7.1', 'content in chunks of any size arrives as it is', [
    ['one chunk', chunked('/a', `2\r\nhi\r\n${end}`), seen],
    ['two chunks', chunked('/a', `1\r\nh\r\n1\r\ni\r\n${end}`), seen],
    [
      'hex in both cases',
      chunked('/a', `a\r\n0123456789\r\nA\r\n0123456789\r\n${end}`),
      forwarded('POST /a 01234567890123456789'),
    ],
    ['zeros before a size', chunked('/a', `0002\r\nhi\r\n${end}`), seen],
    ['zeros as the last size', chunked('/a', '2\r\nhi\r\n0000\r\n\r\n'), seen],
    ['line ends in the content', chunked('/a', `6\r\n0\r\n\r\nx\r\n${end}`), forwarded('POST /a 0\r\n\r\nx')],
    [
      'content that looks like a request',
      chunked('/a', `1f\r\nGET /evil HTTP/1.1\r\nHost: e\r\n\r\n\r\n${end}`),
      forwarded('POST /a GET /evil HTTP/1.1\r\nHost: e\r\n\r\n'),
    ],
  ]),
  ...because('RFC 9112 section 7.1.1', 'an extension is read over and never passed on', [
    ['an extension', chunked('/a', `2;a\r\nhi\r\n${end}`), seen],
    ['an extension with a value', chunked('/a', `2;a=b\r\nhi\r\n${end}`), seen],
    ['an extension with a quoted value', chunked('/a', `2;a="b;c"\r\nhi\r\n${end}`), seen],
    ['several extensions', chunked('/a', `2;a=b;c=d\r\nhi\r\n${end}`), seen],
    ['an extension of the last chunk', chunked('/a', '2\r\nhi\r\n0;a=b\r\n\r\n'), seen],
  ]),
  ...because(
    'RFC 9112 section 7.1.2',
    'trailer fields are read and dropped: none becomes a field of the head',
    [
      ['a trailer', chunked('/a', '2\r\nhi\r\n0\r\nX-A: b\r\n\r\n'), seen, { sees: { 'x-a': [] } }],
      [
        'a trailer that was announced',
        chunked('/a', '2\r\nhi\r\n0\r\nX-A: b\r\n\r\n', 'Trailer: X-A'),
        seen,
        { sees: { trailer: [], 'x-a': [] } },
      ],
      ['a length as a trailer', chunked('/a', '2\r\nhi\r\n0\r\nContent-Length: 9\r\n\r\n'), cutShort],
      [
        'a coding as a trailer',
        chunked('/a', '2\r\nhi\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'),
        cutShort,
      ],
      [
        'a host as a trailer',
        chunked('/a', '2\r\nhi\r\n0\r\nHost: evil.example\r\n\r\n'),
        seen,
        { sees: { host: ['wire.example'] } },
      ],
      ['an address as a trailer', chunked('/a', '2\r\nhi\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n'), seen],
      ['__proto__ as a trailer', chunked('/a', '2\r\nhi\r\n0\r\n__proto__: b\r\n\r\n'), seen],
      ['a folded trailer', chunked('/a', '2\r\nhi\r\n0\r\nX-A: b\r\n c\r\n\r\n'), cutShort],
      ['a trailer without colon', chunked('/a', '2\r\nhi\r\n0\r\nX-A\r\n\r\n'), cutShort],
      ['a blank before the colon of a trailer', chunked('/a', '2\r\nhi\r\n0\r\nX-A : b\r\n\r\n'), cutShort],
      ['a NUL in a trailer', chunked('/a', '2\r\nhi\r\n0\r\nX-A: b\0\r\n\r\n'), cutShort],
      [
        'a request for a trailer',
        chunked('/a', '2\r\nhi\r\n0\r\nGET /evil HTTP/1.1\r\nHost: e\r\n\r\n'),
        cutShort,
      ],
      [
        '20 KB of trailers',
        chunked('/a', `2\r\nhi\r\n0\r\nX-A: ${'b'.repeat(20_000)}\r\n\r\n`),
        brokenOff(431, 'POST /a'),
      ],
    ],
  ),
  ...because(
    'RFC 9112 section 7.1',
    'a size that some reader takes for another one ends the content in two places',
    [
      ['no size', chunked('/a', `\r\nhi\r\n${end}`), cutShort],
      ['a blank for a size', chunked('/a', ` \r\nhi\r\n${end}`), cutShort],
      ['no hex', chunked('/a', `g\r\nhi\r\n${end}`), cutShort],
      ['0x', chunked('/a', `0x2\r\nhi\r\n${end}`), cutShort],
      ['a plus sign', chunked('/a', `+2\r\nhi\r\n${end}`), cutShort],
      ['a minus sign', chunked('/a', `-2\r\nhi\r\n${end}`), cutShort],
      ['a minus sign and zero', chunked('/a', '-0\r\n\r\n'), cutShort],
      ['an underscore', chunked('/a', `0_2\r\nhi\r\n${end}`), cutShort],
      ['a blank before the size', chunked('/a', ` 2\r\nhi\r\n${end}`), cutShort],
      ['a blank after the size', chunked('/a', `2 \r\nhi\r\n${end}`), cutShort],
      ['a tab after the size', chunked('/a', `2\t\r\nhi\r\n${end}`), cutShort],
      ['a comma after the size', chunked('/a', `2,\r\nhi\r\n${end}`), cutShort],
      ['a NUL after the size', chunked('/a', `2\0\r\nhi\r\n${end}`), cutShort],
      ['text after the size', chunked('/a', `2zz\r\nhi\r\n${end}`), cutShort],
      ['a length in decimal', chunked('/a', `10\r\n0123456789\r\n${end}`), cutShort],
      ['17 digits', chunked('/a', `10000000000000002\r\nhi\r\n${end}`), cutShort],
      ['16 digits of f', chunked('/a', 'ffffffffffffffff\r\nhi'), cutShort, { halfClose: true }],
      ['33 zeros before a size', chunked('/a', `${'0'.repeat(33)}2\r\nhi\r\n${end}`), seen],
    ],
  ),
  ...because('RFC 9112 section 7.1', 'CRLF ends a size, an extension and a chunk, and nothing else does', [
    ['LF after the size', chunked('/a', `2\nhi\r\n${end}`), cutShort],
    ['LF after the chunk', chunked('/a', `2\r\nhi\n${end}`), cutShort],
    ['LF after the last size', chunked('/a', '2\r\nhi\r\n0\n\r\n'), cutShort],
    ['LF at the very end', chunked('/a', '2\r\nhi\r\n0\r\n\n'), cutShort],
    ['LF everywhere', chunked('/a', '2\nhi\n0\n\n'), cutShort],
    ['CR after the size', chunked('/a', `2\rhi\r\n${end}`), cutShort],
    ['CR and another byte after the size', chunked('/a', `2\rX\r\nhi\r\n${end}`), cutShort],
    ['CR CR LF after the size', chunked('/a', `2\r\r\nhi\r\n${end}`), cutShort],
    ['LF in an extension', chunked('/a', `2;a\nhi\r\n${end}`), cutShort],
    ['CR in an extension', chunked('/a', `2;a\rb\r\nhi\r\n${end}`), cutShort],
    ['NUL in an extension', chunked('/a', `2;a\0b\r\nhi\r\n${end}`), cutShort],
    ['LF in a quoted extension', chunked('/a', `2;a="\n"\r\nhi\r\n${end}`), cutShort],
    ['a longer chunk than its size', chunked('/a', `1\r\nhi\r\n${end}`), cutShort],
    ['a shorter chunk than its size', chunked('/a', `4\r\nhi\r\n${end}`), cutShort],
    ['no CRLF after a chunk', chunked('/a', `2\r\nhi${end}`), cutShort],
    ['two bytes for CRLF after a chunk', chunked('/a', `2\r\nhiXX${end}`), cutShort],
    [
      'an extension of 20 KB',
      chunked('/a', `2;a=${'b'.repeat(20_000)}\r\nhi\r\n${end}`),
      brokenOff(413, 'POST /a'),
    ],
    [
      'extensions of 15 KB over many chunks',
      chunked('/a', `1;${'b'.repeat(200)}\r\nx\r\n`.repeat(75) + end),
      forwarded(`POST /a ${'x'.repeat(75)}`),
    ],
    [
      'extensions of 20 KB over many chunks',
      chunked('/a', `1;${'b'.repeat(200)}\r\nx\r\n`.repeat(100) + end),
      brokenOff(413, 'POST /a'),
    ],
  ]),
]
