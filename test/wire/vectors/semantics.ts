import { because, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

const options = { statuses: [204], backend: [] }
const allow = 'allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
const chunks = '2\r\nhi\r\n0\r\n\r\n'

/** RFC 9110 sections 9 and 10: methods that the gateway answers itself, Max-Forwards, Expect. */
export const semantics: readonly Vector[] = [
  ...because(
    'RFC 9110 section 9.3.8',
    'TRACE shows what proxies have added, credentials too: it is not forwarded',
    [
      ['TRACE', request('TRACE /a'), refused(405), { says: allow }],
      ['TRACE with Max-Forwards', request('TRACE /a', 'Max-Forwards: 5'), refused(405)],
      ['TRACE with Max-Forwards: 0', request('TRACE /a', 'Max-Forwards: 0'), refused(405)],
      ['TRACE with content', request('TRACE /a', 'Content-Length: 2') + 'hi', refused(405)],
      ['TRACE of an absolute target', request('TRACE http://wire.example/a'), refused(405)],
      [
        'TRACE, then a request',
        request('TRACE /a') + request('GET /b'),
        inTurn(refused(405), forwarded('GET /b')),
      ],
      ['TRACK', request('TRACK /a'), refused(400)],
    ],
  ),
  ...because('RFC 9110 section 9.3.6', 'nothing is connected to anything', [
    [
      'CONNECT',
      'CONNECT wire.example:443 HTTP/1.1\r\nHost: wire.example:443\r\n\r\n',
      refused(405),
      { says: allow },
    ],
    [
      'CONNECT with bytes after it',
      'CONNECT wire.example:443 HTTP/1.1\r\nHost: wire.example:443\r\n\r\n' + request('GET /b'),
      refused(405),
    ],
    ['CONNECT in HTTP/1.0', 'CONNECT wire.example:443 HTTP/1.0\r\n\r\n', refused(405)],
    ['CONNECT of a path', request('CONNECT /a'), refused(405)],
    [
      'CONNECT with content',
      'CONNECT wire.example:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi',
      refused(405),
    ],
    [
      'CONNECT after a request',
      request('GET /a') + 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n',
      inTurn(forwarded('GET /a'), refused(405)),
    ],
  ]),
  ...because(
    'RFC 9110 section 9.3.7',
    'OPTIONS * asks the gateway itself; with a path prefix it could not be forwarded',
    [
      ['OPTIONS *', request('OPTIONS *'), options, { says: allow }],
      ['OPTIONS of an absolute target without path', request('OPTIONS http://wire.example'), options],
      ['OPTIONS of an absolute target with port', request('OPTIONS http://wire.example:80'), options],
      [
        'OPTIONS of an absolute target with path',
        request('OPTIONS http://wire.example/'),
        forwarded('OPTIONS /'),
      ],
      ['OPTIONS * with content', request('OPTIONS *', 'Content-Length: 2') + 'hi', options],
      [
        'OPTIONS * with chunked content',
        request('OPTIONS *', 'Transfer-Encoding: chunked') + chunks,
        options,
      ],
      ['OPTIONS * without Host', 'OPTIONS * HTTP/1.1\r\n\r\n', refused(400)],
      [
        'OPTIONS *, then a request',
        request('OPTIONS *') + request('GET /b'),
        inTurn(options, forwarded('GET /b')),
      ],
    ],
  ),
  ...because(
    'RFC 9110 section 7.6.2',
    'Max-Forwards counts down for OPTIONS and means nothing for the rest',
    [
      ['Max-Forwards: 0', request('OPTIONS /a', 'Max-Forwards: 0'), options, { says: allow }],
      [
        'Max-Forwards: 1',
        request('OPTIONS /a', 'Max-Forwards: 1'),
        forwarded('OPTIONS /a'),
        { sees: { 'max-forwards': ['0'] } },
      ],
      [
        'Max-Forwards: 10',
        request('OPTIONS /a', 'Max-Forwards: 10'),
        forwarded('OPTIONS /a'),
        { sees: { 'max-forwards': ['9'] } },
      ],
      ['Max-Forwards: 00', request('OPTIONS /a', 'Max-Forwards: 00'), options],
      ['Max-Forwards: -1', request('OPTIONS /a', 'Max-Forwards: -1'), refused(400)],
      ['Max-Forwards in words', request('OPTIONS /a', 'Max-Forwards: none'), refused(400)],
      ['Max-Forwards empty', request('OPTIONS /a', 'Max-Forwards:'), refused(400)],
      ['Max-Forwards of ten digits', request('OPTIONS /a', 'Max-Forwards: 4294967296'), refused(400)],
      [
        'Max-Forwards: 0 for GET',
        request('GET /a', 'Max-Forwards: 0'),
        forwarded('GET /a'),
        { sees: { 'max-forwards': ['0'] } },
      ],
    ],
  ),
  ...because(
    'RFC 9110 section 10.1.1',
    '100 is said once the request is let pass; other expectations cannot be met',
    [
      [
        '100-continue',
        request('POST /a', 'Expect: 100-continue', 'Content-Length: 2') + 'hi',
        forwarded('POST /a hi'),
        { interim: [100], sees: { expect: [] } },
      ],
      [
        '100-continue in capitals',
        request('POST /a', 'EXPECT: 100-CONTINUE', 'Content-Length: 2') + 'hi',
        forwarded('POST /a hi'),
        { interim: [100] },
      ],
      [
        '100-continue with chunks',
        request('POST /a', 'Expect: 100-continue', 'Transfer-Encoding: chunked') + chunks,
        forwarded('POST /a hi'),
        { interim: [100] },
      ],
      ['100-continue without content', request('GET /a', 'Expect: 100-continue'), forwarded('GET /a')],
      [
        '100-continue with a length of zero',
        request('POST /a', 'Expect: 100-continue', 'Content-Length: 0'),
        forwarded('POST /a'),
      ],
      [
        '100-continue in HTTP/1.0',
        'POST /a HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi',
        forwarded('POST /a hi'),
        { sees: { expect: [] } },
      ],
      [
        '100-continue for a target that is refused',
        request('POST /%zz', 'Expect: 100-continue', 'Content-Length: 2'),
        refused(400),
      ],
      ['another expectation', request('POST /a', 'Expect: 200-ok', 'Content-Length: 2') + 'hi', refused(417)],
      [
        'another expectation besides',
        request('POST /a', 'Expect: 100-continue, 200-ok', 'Content-Length: 2') + 'hi',
        refused(417),
      ],
      [
        'another expectation in a second line',
        request('POST /a', 'Expect: 100-continue', 'Expect: 200-ok', 'Content-Length: 2') + 'hi',
        refused(417),
      ],
      [
        'an expectation that begins alike',
        request('POST /a', 'Expect: 100-continue-not', 'Content-Length: 2') + 'hi',
        refused(417),
      ],
      [
        'an expectation with a parameter',
        request('POST /a', 'Expect: 100-continue;a=b', 'Content-Length: 2') + 'hi',
        refused(417),
      ],
      ['an empty expectation', request('POST /a', 'Expect:', 'Content-Length: 2') + 'hi', refused(417)],
      [
        'another expectation in HTTP/1.0',
        'GET /a HTTP/1.0\r\nHost: a\r\nExpect: 200-ok\r\n\r\n',
        forwarded('GET /a'),
      ],
    ],
  ),
]
