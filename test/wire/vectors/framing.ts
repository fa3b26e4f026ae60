import { because, brokenOff, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

const chunks = '2\r\nhi\r\n0\r\n\r\n'

function post(...lines: string[]): string {
  return request('POST /a', ...lines)
}

const byLength = [
  forwarded('POST /a hi'),
  { sees: { 'content-length': ['2'], 'transfer-encoding': [] } },
] as const
/** Chunked content: the gateway frames it by its length if all of it has arrived at once. */
const inChunks = [forwarded('POST /a hi'), { sees: { framed: ['once'] } }] as const

/** RFC 9112 section 6: where content ends. */
export const framing: readonly Vector[] = [
  ...because(
    'RFC 9112 section 6.2',
    'content is framed anew, by the number that was read and nothing of how it was written',
    [
      ['a length', post('Content-Length: 2') + 'hi', ...byLength],
      ['a length in blanks', post('Content-Length: \t 2 \t') + 'hi', ...byLength],
      ['a length with zeros before it', post('Content-Length: 0002') + 'hi', ...byLength],
      [
        'a length of zero',
        post('Content-Length: 0'),
        forwarded('POST /a'),
        { sees: { 'content-length': ['0'] } },
      ],
      ['a length of zero for GET', request('GET /a', 'Content-Length: 0'), forwarded('GET /a')],
      ['GET with content', request('GET /a', 'Content-Length: 2') + 'hi', forwarded('GET /a hi')],
      ['HEAD with content', request('HEAD /a', 'Content-Length: 2') + 'hi', forwarded('HEAD /a hi')],
      ['DELETE with content', request('DELETE /a', 'Content-Length: 2') + 'hi', forwarded('DELETE /a hi')],
      ['OPTIONS with content', request('OPTIONS /a', 'Content-Length: 2') + 'hi', forwarded('OPTIONS /a hi')],
      [
        'content that looks like a request',
        post('Content-Length: 35') + request('GET /evil').slice(0, 35),
        forwarded(`POST /a ${request('GET /evil').slice(0, 35)}`),
      ],
      [
        'more content than the length',
        post('Content-Length: 1') + 'hi',
        inTurn(forwarded('POST /a h'), refused(400)),
      ],
      ['no length, then bytes', `${post('X-A: b')}hi there`, inTurn(forwarded('POST /a'), refused(400))],
    ],
  ),
  ...because(
    'RFC 9112 section 6.3 rule 5',
    'a length that is not a number, or several, is where request smuggling begins',
    [
      ['a plus sign', post('Content-Length: +2') + 'hi', refused(400)],
      ['a minus sign', post('Content-Length: -2') + 'hi', refused(400)],
      ['hexadecimal', post('Content-Length: 0x2') + 'hi', refused(400)],
      ['a fraction', post('Content-Length: 2.0') + 'hi', refused(400)],
      ['an exponent', post('Content-Length: 2e0') + 'hi', refused(400)],
      ['an underscore', post('Content-Length: 0_2') + 'hi', refused(400)],
      ['a blank inside', post('Content-Length: 0 2') + 'hi', refused(400)],
      ['a comma at the end', post('Content-Length: 2,') + 'hi', refused(400)],
      ['a semicolon', post('Content-Length: 2;a') + 'hi', refused(400)],
      ['a quote', post('Content-Length: "2"') + 'hi', refused(400)],
      ['a word', post('Content-Length: two') + 'hi', refused(400)],
      ['empty', post('Content-Length:') + 'hi', refused(400)],
      ['digits beyond ASCII', post('Content-Length: \xb2') + 'hi', refused(400)],
      ['a NUL after', post('Content-Length: 2\0') + 'hi', refused(400)],
      ['a vertical tab before', post('Content-Length: \x0b2') + 'hi', refused(400)],
      ['a list of two', post('Content-Length: 2, 3') + 'hi', refused(400)],
      ['a list of the same', post('Content-Length: 2, 2') + 'hi', refused(400)],
      ['two lines', post('Content-Length: 2', 'Content-Length: 3') + 'hi', refused(400)],
      ['two lines of the same', post('Content-Length: 2', 'Content-Length: 2') + 'hi', refused(400)],
      ['two lines, one of zero', post('Content-Length: 0', 'Content-Length: 2') + 'hi', refused(400)],
      ['two lines in two cases', post('Content-Length: 2', 'content-LENGTH: 2') + 'hi', refused(400)],
      ['20 digits', post('Content-Length: 18446744073709551618') + 'hi', refused(400)],
      ['2 to the 64 and two', post('Content-Length: 18446744073709551618') + 'hi', refused(400)],
      ['2 to the 63', post('Content-Length: 9223372036854775808') + 'hi', refused(413)],
      ['2 to the 53', post('Content-Length: 9007199254740992') + 'hi', refused(413)],
      ['300 digits', post(`Content-Length: ${'1'.repeat(300)}`) + 'hi', refused(400)],
      ['300 zeros', post(`Content-Length: ${'0'.repeat(300)}2`) + 'hi', ...byLength],
    ],
  ),
  ...because(
    'RFC 9112 section 6.1',
    'a coding takes the place of a length, so only one of both can be meant',
    [
      [
        'a length, then chunked',
        post('Content-Length: 6', 'Transfer-Encoding: chunked') + chunks,
        refused(400),
      ],
      [
        'chunked, then a length',
        post('Transfer-Encoding: chunked', 'Content-Length: 6') + chunks,
        refused(400),
      ],
      [
        'chunked and a length of zero',
        post('Transfer-Encoding: chunked', 'Content-Length: 0') + chunks,
        refused(400),
      ],
      [
        'a length and identity',
        post('Content-Length: 2', 'Transfer-Encoding: identity') + 'hi',
        refused(400),
      ],
      ['a length and an empty coding', post('Content-Length: 2', 'Transfer-Encoding:') + 'hi', refused(400)],
      [
        'both, named by Connection',
        post('Connection: transfer-encoding', 'Content-Length: 2', 'Transfer-Encoding: chunked') + chunks,
        refused(400),
      ],
    ],
  ),
  ...because('RFC 9112 section 6.1', 'chunked, in any letter case, alone, is the only coding there is here', [
    ['chunked', post('Transfer-Encoding: chunked') + chunks, ...inChunks],
    ['chunked in capitals', post('TRANSFER-ENCODING: CHUNKED') + chunks, ...inChunks],
    ['chunked in blanks', post('Transfer-Encoding: \t chunked  ') + chunks, ...inChunks],
    ['chunked before a tab', post('Transfer-Encoding: chunked\t') + chunks, refused(400)],
    ['chunked before a tab and a blank', post('Transfer-Encoding: chunked\t ') + chunks, refused(400)],
    ['chunked GET', request('GET /a', 'Transfer-Encoding: chunked') + chunks, forwarded('GET /a hi')],
    ['chunked HEAD', request('HEAD /a', 'Transfer-Encoding: chunked') + chunks, forwarded('HEAD /a hi')],
    [
      'chunked DELETE',
      request('DELETE /a', 'Transfer-Encoding: chunked') + chunks,
      forwarded('DELETE /a hi'),
    ],
    [
      'chunked OPTIONS',
      request('OPTIONS /a', 'Transfer-Encoding: chunked') + chunks,
      forwarded('OPTIONS /a hi'),
    ],
    [
      'chunked PROPFIND',
      request('PROPFIND /a', 'Transfer-Encoding: chunked') + chunks,
      forwarded('PROPFIND /a hi'),
    ],
    ['chunked and empty', post('Transfer-Encoding: chunked') + '0\r\n\r\n', forwarded('POST /a')],
  ]),
  ...because(
    'RFC 9112 section 6.1',
    'a coding that is not understood, or not last, leaves the end of the content unknown',
    [
      ['gzip, chunked', post('Transfer-Encoding: gzip, chunked') + chunks, refused(501)],
      [
        'gzip and chunked in two lines',
        post('Transfer-Encoding: gzip', 'Transfer-Encoding: chunked') + chunks,
        refused(501),
      ],
      ['identity, chunked', post('Transfer-Encoding: identity, chunked') + chunks, refused(501)],
      ['chunked twice', post('Transfer-Encoding: chunked, chunked') + chunks, refused(400)],
      [
        'chunked in two lines',
        post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + chunks,
        refused(400),
      ],
      ['a comma before chunked', post('Transfer-Encoding: ,chunked') + chunks, refused(501)],
      ['a comma after chunked', post('Transfer-Encoding: chunked,') + chunks, refused(400)],
      ['chunked, identity', post('Transfer-Encoding: chunked, identity') + chunks, refused(400)],
      [
        'chunked, then identity in two lines',
        post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + chunks,
        refused(400),
      ],
      ['identity', post('Transfer-Encoding: identity') + 'hi', refused(400)],
      ['gzip', post('Transfer-Encoding: gzip') + 'hi', refused(400)],
      ['empty coding', post('Transfer-Encoding:') + chunks, refused(400)],
      ['an unknown word', post('Transfer-Encoding: cow') + chunks, refused(400)],
      ['an x before', post('Transfer-Encoding: xchunked') + chunks, refused(400)],
      ['an x after', post('Transfer-Encoding: chunkedx') + chunks, refused(400)],
      ['a parameter', post('Transfer-Encoding: chunked;a=b') + chunks, refused(400)],
      ['a quote around the coding', post('Transfer-Encoding: "chunked"') + chunks, refused(400)],
      ['two words', post('Transfer-Encoding: chunked chunked') + chunks, refused(400)],
      ['a blank before the colon', post('Transfer-Encoding : chunked') + chunks, refused(400)],
      ['a vertical tab before the coding', post('Transfer-Encoding: \x0bchunked') + chunks, refused(400)],
      ['a vertical tab after', post('Transfer-Encoding: chunked\x0b') + chunks, refused(400)],
      ['a NUL after the coding', post('Transfer-Encoding: chunked\0') + chunks, refused(400)],
      ['a bare CR before', post('Transfer-Encoding:\rchunked') + chunks, refused(400)],
      ['a bare LF before', post('Transfer-Encoding:\nchunked') + chunks, refused(400)],
      ['a bare LF line before it', post('X-A: b\nTransfer-Encoding: chunked') + chunks, refused(400)],
      ['a non-breaking blank', post('Transfer-Encoding: \xa0chunked') + chunks, refused(400)],
      [
        'an underscore in the name',
        post('Transfer_Encoding: chunked', 'Content-Length: 2') + 'hi',
        forwarded('POST /a hi'),
        { sees: { transfer_encoding: [], 'content-length': ['2'] } },
      ],
      ['a letter of Turkish', post('Transfer-Encod\xddng: chunked') + chunks, refused(400)],
      [
        'another field of that value',
        post('X-Transfer-Encoding: chunked', 'Content-Length: 2') + 'hi',
        ...byLength,
      ],
    ],
  ),
  ...because('RFC 9112 section 6.1', 'HTTP/1.0 has no codings: a message with one is taken as faulty', [
    [
      'chunked in HTTP/1.0',
      'POST /a HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n' + chunks,
      refused(400),
    ],
    [
      'chunked in HTTP/1.0 that goes on',
      'POST /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n' + chunks,
      refused(400),
    ],
    [
      'both in HTTP/1.0',
      'POST /a HTTP/1.0\r\nHost: a\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n' + chunks,
      refused(400),
    ],
    [
      'a length in HTTP/1.0',
      'POST /a HTTP/1.0\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi',
      forwarded('POST /a hi'),
    ],
  ]),
  ...because('RFC 9112 section 8', 'a request cut short is never completed towards the backend', [
    ['in the head', post('Content-Le').slice(0, -4), refused(400), { halfClose: true }],
    [
      'in content by length',
      post('Content-Length: 4') + 'hi',
      brokenOff(400, 'POST /a'),
      { halfClose: true },
    ],
    ['before content by length', post('Content-Length: 4'), brokenOff(400, 'POST /a'), { halfClose: true }],
    [
      'in a chunk',
      post('Transfer-Encoding: chunked') + '4\r\nhi',
      brokenOff(400, 'POST /a'),
      { halfClose: true },
    ],
    [
      'before the last chunk',
      post('Transfer-Encoding: chunked') + '2\r\nhi\r\n',
      brokenOff(400, 'POST /a'),
      { halfClose: true },
    ],
  ]),
]
