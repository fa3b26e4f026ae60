import { because, brokenOff, chunked, forwarded, request, type Vector } from '../vector.ts'

const evil = request('GET /evil')
const end = '0\r\n\r\n'
const cutShort = brokenOff(400, 'POST /a')

/** Requests hidden in or after chunks, sizes, extensions and trailers, from vulnerabilities of servers and proxies. */
export const advisoriesChunks: readonly Vector[] = [
  ...because('CVE-2021-22960', 'llhttp read over a line end in an extension', [
    ['a line feed in an extension', chunked('/a', `2;\nhi\r\n${end}`), cutShort],
    ['a CR and a byte after a size', chunked('/a', `2 \rX\r\nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2023-40175 and CVE-2025-59822', 'Puma and http4s ended trailers too early', [
    ['a trailer without colon before a request', chunked('/a', `0\r\nX\r\n\r\n${evil}`), cutShort],
    [
      'a request after trailers',
      chunked('/a', `0\r\nX-A: b\r\n\r\n${evil}`),
      forwarded('POST /a', 'GET /evil'),
    ],
  ]),
  ...because('CVE-2023-45648', 'Tomcat misread trailers', [
    ['a trailer that is not a field', chunked('/a', `0\r\n\x01: b\r\n\r\n${evil}`), cutShort],
  ]),
  ...because('CVE-2014-0075 and CVE-2017-7657', 'Tomcat and Jetty let a size overflow', [
    [
      'a size of 2 to the 32 and two',
      chunked('/a', `100000002\r\nhi\r\n${end}`),
      cutShort,
      { halfClose: true },
    ],
    ['a size of 2 to the 64 and two', chunked('/a', `10000000000000002\r\nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2021-37147 and CVE-2024-53868', 'Apache Traffic Server ended lines at LF', [
    ['a size ended by LF', chunked('/a', `2\nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2025-22871 and CVE-2025-58056', 'Go and Netty ended a size at LF, in an extension too', [
    ['TERM.EXT', chunked('/a', `2;\nxx\r\n4c\r\n${end}${evil}`), cutShort],
    ['EXT.TERM', chunked('/a', `2;a\nb\r\nhi\r\n${end}${evil}`), cutShort],
    ['a size, a blank and LF', chunked('/a', `2 \nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2025-55315', 'Kestrel read a line feed in an extension as its part', [
    ['LF in a quoted extension', chunked('/a', `2;a="\nb"\r\nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2025-43859', 'h11 took any two bytes for the end of a chunk', [
    ['two bytes for CRLF (TERM.SPILL)', chunked('/a', `5\r\nAAAAAXX2\r\n45\r\n${end}${evil}`), cutShort],
    ['one byte for CRLF (ONE.TWO)', chunked('/a', `2\r\nhi\n${end}`), cutShort],
    ['three bytes for CRLF (TWO.ONE)', chunked('/a', `2\r\nhi\r\n\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2023-46846', 'Squid misread extensions', [
    ['an extension of many blanks', chunked('/a', `2 ; a = b\r\nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2024-22019 and CVE-2023-39326', 'Node and Go read extensions without end', [
    ['an extension without end', chunked('/a', `1;${'a'.repeat(40_000)}`), brokenOff(413, 'POST /a')],
  ]),
]
