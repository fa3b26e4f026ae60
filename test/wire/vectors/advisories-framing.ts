import { because, brokenOff, chunked, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

const evil = request('GET /evil')
const end = '0\r\n\r\n'
const te = 'Transfer-Encoding: chunked'

/** A `POST` whose content is a request by one reading and not by another. */
function post(lines: readonly string[], content: string): string {
  return request('POST /a', ...lines) + content
}

const both = [`Content-Length: ${end.length + evil.length}`, te]
const cutShort = brokenOff(400, 'POST /a')

/** Requests hidden in other requests, from vulnerabilities of servers and proxies of all kinds. */
export const advisoriesFraming: readonly Vector[] = [
  ...because('CVE-2005-2088', 'Apache forwarded a length and a coding', [
    ['CL.TE', post(both, end + evil), refused(400)],
    [
      'TE.CL',
      post([te, 'Content-Length: 4'], `${evil.length.toString(16)}\r\n${evil}\r\n${end}`),
      refused(400),
    ],
  ]),
  ...because('CVE-2005-2090', 'Tomcat took one of several lengths', [
    ['CL.CL', post(['Content-Length: 2', `Content-Length: ${2 + evil.length}`], `hi${evil}`), refused(400)],
  ]),
  ...because('CVE-2019-18277', 'HAProxy took a coding after a vertical tab for none', [
    [
      'a vertical tab before chunked',
      post(['Content-Length: 4', 'Transfer-Encoding: \x0bchunked'], end + evil),
      refused(400),
    ],
  ]),
  ...because(
    'CVE-2019-16869 and CVE-2019-16276',
    'Netty and Go read a field whose name has a blank after it',
    [
      [
        'a blank after Transfer-Encoding',
        post(['Content-Length: 4', 'Transfer-Encoding : chunked'], end + evil),
        refused(400),
      ],
      ['a blank after Content-Length', post(['Content-Length : 4', te], end + evil), refused(400)],
    ],
  ),
  ...because('CVE-2020-7238', 'Netty read a field whose name has a blank before it', [
    [
      'a blank before Transfer-Encoding',
      post([' Transfer-Encoding:chunked', 'Content-Length: 4'], end + evil),
      refused(400),
    ],
  ]),
  ...because('CVE-2019-20444', 'Netty let a line without a colon be a field, or a part of the one before', [
    [
      'a line without a colon before a coding',
      post(['Content-Length: 4', 'X', te], end + evil),
      refused(400),
    ],
  ]),
  ...because('CVE-2021-43797', 'Netty skipped control characters around a name', [
    [
      'a control character before the name',
      post(['Content-Length: 4', '\x01Transfer-Encoding: chunked'], end + evil),
      refused(400),
    ],
    [
      'a control character after the name',
      post(['Content-Length: 4', 'Transfer-Encoding\x1f: chunked'], end + evil),
      refused(400),
    ],
  ]),
  ...because('CVE-2026-50020', 'Netty skipped control characters before a request', [
    ['control characters before a request', `\x01\x02\x0b${request('GET /a')}`, refused(400)],
    ['a NUL between requests', `${request('GET /a')}\0${evil}`, inTurn(forwarded('GET /a'), refused(400))],
  ]),
  ...because('CVE-2021-40346', 'HAProxy kept the length of a name in too few bits', [
    [
      'a name of 270 characters',
      post([`Content-Length0${'a'.repeat(255)}:`, `Content-Length: ${evil.length}`], evil),
      forwarded(`POST /a ${evil}`),
    ],
  ]),
  ...because('CVE-2023-25725', 'HAProxy dropped all fields after one without a name', [
    ['a field without a name', post([': x', `Content-Length: ${evil.length}`], evil), refused(400)],
  ]),
  ...because('CVE-2023-40225', 'HAProxy forwarded an empty length', [
    ['an empty length', post(['Content-Length:'], evil), refused(400)],
    [
      'an empty length before one',
      post(['Content-Length:', `Content-Length: ${evil.length}`], evil),
      refused(400),
    ],
  ]),
  ...because('CVE-2018-7159', "Node's parser before llhttp let blanks be in a length", [
    ['a blank in a length', post(['Content-Length: 1 2'], 'hi'), refused(400)],
  ]),
  ...because('CVE-2019-15605 and CVE-2020-8287', 'Node took the first of two codings', [
    ['chunked, then another coding', post([te, 'Transfer-Encoding: identity'], end + evil), refused(400)],
  ]),
  ...because('CVE-2020-8201', 'Node turned a CR in a name into a hyphen', [
    ['a CR for a hyphen', post(['Content\rLength: 4', te], end + evil), refused(400)],
  ]),
  ...because('CVE-2022-32213 and CVE-2022-32215', 'llhttp accepted a coding over several lines', [
    ['a folded coding', post(['Transfer-Encoding: chunked', ' , identity'], end + evil), refused(400)],
    ['an empty line of a coding', post(['Transfer-Encoding:', ' chunked'], end + evil), refused(400)],
  ]),
  ...because('CVE-2022-32214 and CVE-2022-35256', 'llhttp ended fields without CRLF', [
    [
      'fields ended by LF',
      'POST /a HTTP/1.1\r\nHost: a\r\nX-A: b\nContent-Length: 4\r\n\r\nhihi',
      refused(400),
    ],
    ['the head ended by LF', 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\n\nhi', refused(400)],
  ]),
  ...because('CVE-2023-30589', 'llhttp ended a field at CR', [
    ['a field ended by CR', post(['X-A: b\r\rTransfer-Encoding: chunked'], end + evil), refused(400)],
  ]),
  ...because('CVE-2024-27982', 'Node did not see a length after a blank', [
    [
      'a blank before Content-Length',
      post(['X-A: b', ` Content-Length: ${evil.length}`], evil),
      refused(400),
    ],
  ]),
  ...because('CVE-2025-23167', 'Node ended the head at CRLF CR', [
    [
      'CRLF CR and a letter',
      `POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\rX: y\r\n\r\nhi`,
      refused(400),
    ],
  ]),
  ...because(
    'CVE-2019-16785 and CVE-2019-16789',
    'Waitress took LF for a line end, and blanks beyond SP and HTAB off a coding',
    [
      ['a request hidden after LF', post(['X-A: b\nContent-Length: 4'], 'hihi'), refused(400)],
      [
        'a non-breaking blank before chunked',
        post(['Transfer-Encoding: \x85chunked'], end + evil),
        refused(400),
      ],
    ],
  ),
  ...because('CVE-2019-16786', 'Waitress ignored chunked in a list', [
    ['gzip, chunked', post(['Transfer-Encoding: gzip, chunked'], end + evil), refused(501)],
  ]),
  ...because('CVE-2022-24761 and CVE-2022-24801', 'Waitress and Twisted read numbers as Python does', [
    ['a plus sign', post([`Content-Length: +${evil.length}`], evil), refused(400)],
    ['an underscore', post(['Content-Length: 1_0'], '0123456789'), refused(400)],
    ['a size with 0x', chunked('/a', `0x2\r\nhi\r\n${end}`), cutShort],
    ['a size with a plus sign', chunked('/a', `+2\r\nhi\r\n${end}`), cutShort],
  ]),
  ...because('CVE-2024-49768', 'Waitress served bytes after a request that ends the connection', [
    [
      'a request after an error',
      `POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n${evil}`,
      refused(400),
    ],
  ]),
  ...because('CVE-2023-46137', 'Twisted answered requests of a connection out of order', [
    [
      'three in one piece',
      request('GET /a') + evil + request('GET /b'),
      forwarded('GET /a', 'GET /evil', 'GET /b'),
    ],
  ]),
  ...because('CVE-2020-11077', 'Puma mixed up answers where a body came in pieces before another request', [
    [
      'a body, then a request',
      post(['Content-Length: 4'], 'body') + evil,
      forwarded('POST /a body', 'GET /evil'),
    ],
  ]),
  ...because('CVE-2024-1135', 'Gunicorn took a list that ends in another coding for chunked', [
    ['chunked, gibberish', post(['Transfer-Encoding: chunked, gibberish'], end + evil), refused(400)],
  ]),
  ...because('CVE-2021-33037', 'Tomcat let HTTP/1.0 and identity take the coding away', [
    [
      'chunked in HTTP/1.0',
      `POST /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n${te}\r\n\r\n${end}${evil}`,
      refused(400),
    ],
    ['identity before chunked', post(['Transfer-Encoding: identity', te], end + evil), refused(501)],
  ]),
  ...because('CVE-2022-42252', 'Tomcat accepted a length that is not a number', [
    ['a length of dashes', post(['Content-Length: --'], evil), refused(400)],
  ]),
  ...because('CVE-2017-7656', 'Jetty served HTTP/0.9 with content that is a request', [
    ['HTTP/0.9 with content', `GET /a\r\n\r\n${evil}`, refused(505)],
  ]),
  ...because('CVE-2023-40167', 'Jetty read a plus sign before a length', [
    ['a plus sign before zero', post(['Content-Length: +0'], evil), refused(400)],
  ]),
  ...because('CVE-2018-8004', 'Apache Traffic Server went on after a field that it refused', [
    [
      'two lengths and a request',
      post(['Content-Length: 2', 'Content-Length: 2'], `hi${evil}`),
      refused(400),
    ],
    ['a blank before the colon of a length', post([`Content-Length : ${evil.length}`], evil), refused(400)],
  ]),
  ...because('CVE-2021-32715 and CVE-2021-32714', 'hyper read a plus sign, and let a size overflow', [
    ['a plus sign before a length and a coding', post(['Content-Length: +2', te], end), refused(400)],
    ['a size of f', chunked('/a', `f0000000000000003\r\nabc\r\n${end}`), cutShort],
  ]),
]
