import { because, brokenOff, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

const post = (target: string): string => request(`POST ${target}`, 'Content-Length: 2') + 'hi'
const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `/${i}`)

/** RFC 9112 section 9.3.2: several requests on one connection. */
export const pipelines: readonly Vector[] = [
  ...because(
    'RFC 9112 section 9.3.2',
    'requests of one connection are served one after another and answered in order',
    [
      ['two', request('GET /a') + request('GET /b'), forwarded('GET /a', 'GET /b')],
      [
        'three with content',
        post('/a') + post('/b') + post('/c'),
        forwarded('POST /a hi', 'POST /b hi', 'POST /c hi'),
      ],
      [
        'twenty',
        many(20)
          .map((target) => request(`GET ${target}`))
          .join(''),
        forwarded(...many(20).map((target) => `GET ${target}`)),
      ],
      [
        'two hundred',
        many(200)
          .map((target) => request(`GET ${target}`))
          .join(''),
        forwarded(...many(200).map((target) => `GET ${target}`)),
      ],
      [
        'unsafe ones before a safe one',
        post('/a') + request('DELETE /b') + request('GET /c'),
        forwarded('POST /a hi', 'DELETE /b', 'GET /c'),
      ],
      [
        'chunked, then by length',
        request('POST /a', 'Transfer-Encoding: chunked') + '2\r\nhi\r\n0\r\n\r\n' + post('/b'),
        forwarded('POST /a hi', 'POST /b hi'),
      ],
      [
        'with trailers between',
        request('POST /a', 'Transfer-Encoding: chunked') + '0\r\nX-A: b\r\n\r\n' + request('GET /b'),
        forwarded('POST /a', 'GET /b'),
      ],
      [
        'with empty lines between',
        request('GET /a') + '\r\n\r\n' + request('GET /b'),
        forwarded('GET /a', 'GET /b'),
      ],
      [
        'with different hosts',
        request('GET /a') + request('GET /b').replace('wire.example', 'b.example'),
        forwarded('GET /a', 'GET /b'),
      ],
    ],
  ),
  ...because('RFC 9112 section 9.3.2', 'a refusal takes its place in the order', [
    [
      'a refused one in the middle',
      request('GET /a') + request('GET /%zz') + request('GET /c'),
      inTurn(forwarded('GET /a'), refused(400), forwarded('GET /c')),
    ],
    [
      'a refused one with content in the middle',
      request('GET /a') + post('/%zz') + request('GET /c'),
      inTurn(forwarded('GET /a'), refused(400), forwarded('GET /c')),
    ],
    [
      'a refused one first',
      request('GET /%zz') + request('GET /b'),
      inTurn(refused(400), forwarded('GET /b')),
    ],
    [
      'an expectation in the middle',
      request('GET /a') + request('GET /b', 'Expect: x') + request('GET /c'),
      inTurn(forwarded('GET /a'), refused(417), forwarded('GET /c')),
    ],
    [
      'TRACE in the middle',
      request('GET /a') + request('TRACE /b') + request('GET /c'),
      inTurn(forwarded('GET /a'), refused(405), forwarded('GET /c')),
    ],
    [
      'nonsense after a request',
      request('GET /a') + 'nonsense\r\n\r\n',
      inTurn(forwarded('GET /a'), refused(400)),
    ],
    [
      'nonsense after two',
      request('GET /a') + post('/b') + '\0',
      inTurn(forwarded('GET /a', 'POST /b hi'), refused(400)),
    ],
    [
      'a faulty chunk after a request',
      request('GET /a') + request('POST /b', 'Transfer-Encoding: chunked') + 'x\r\n',
      inTurn(forwarded('GET /a'), brokenOff(400, 'POST /b')),
    ],
  ]),
  ...because(
    'RFC 9112 section 9.6',
    'after an answer that ends the connection nothing is served, and nothing counted',
    [
      [
        'after faulty framing',
        request('POST /a', 'Transfer-Encoding: gzip, chunked') + '0\r\n\r\n' + request('GET /b'),
        refused(501),
      ],
      ['after an unreadable head', request('GET /a', 'X A: b') + request('GET /b'), refused(400)],
      [
        'after a length and a coding',
        request('POST /a', 'Content-Length: 5', 'Transfer-Encoding: chunked') +
          '0\r\n\r\n' +
          request('GET /b'),
        refused(400),
      ],
      [
        'after another version',
        'GET /a HTTP/2.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n' + request('GET /b'),
        refused(505),
      ],
      [
        'after close',
        request('GET /a') + request('GET /b', 'Connection: close') + request('GET /c'),
        forwarded('GET /a', 'GET /b'),
      ],
      [
        'after HTTP/1.0',
        request('GET /a') + 'GET /b HTTP/1.0\r\nHost: a\r\n\r\n' + request('GET /c'),
        forwarded('GET /a', 'GET /b'),
      ],
    ],
  ),
]
