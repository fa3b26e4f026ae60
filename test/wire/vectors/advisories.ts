import { because, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

const handshake = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='

function seen(name: string, ...values: string[]) {
  return [forwarded('GET /a'), { sees: { [name]: values } }] as const
}

/** Targets, hosts, fields and upgrades that went wrong elsewhere. */
export const advisories: readonly Vector[] = [
  ...because('CVE-2022-31813', 'Apache left out X-Forwarded-For where Connection names it', [
    [
      'X-Forwarded-For named',
      request('GET /a', 'Connection: close, X-Forwarded-For', 'X-Forwarded-For: 9.9.9.9'),
      ...seen('x-forwarded-host', 'wire.example'),
    ],
    [
      'X-Forwarded-Host named',
      request('GET /a', 'Connection: x-forwarded-host'),
      ...seen('x-forwarded-host', 'wire.example'),
    ],
    [
      'X-Forwarded-Proto named',
      request('GET /a', 'Connection: x-forwarded-proto'),
      ...seen('x-forwarded-proto', 'http'),
    ],
  ]),
  ...because('CVE-2024-45410', 'Traefik let Connection take out the fields it had set', [
    [
      'all of our own named',
      request('GET /a', 'Connection: x-real-ip, x-request-id, via, x-forwarded-proto, host'),
      ...seen('via', '1.1 sluice'),
    ],
  ]),
  ...because('CVE-2024-45614', 'Puma let an alias with underscores overwrite what a proxy had set', [
    ['X-Forwarded_For', request('GET /a', 'X-Forwarded_For: 9.9.9.9'), ...seen('x-forwarded_for')],
  ]),
  ...because('CVE-2020-28483', 'Gin believed X-Forwarded-For and X-Real-IP of anybody', [
    [
      'X-Real-IP twice',
      request('GET /a', 'X-Real-IP: 9.9.9.9', 'X-Real-IP: 8.8.8.8'),
      ...seen('x-forwarded-proto', 'http'),
    ],
  ]),
  ...because('CVE-2023-25690', 'Apache decoded line ends in a path and wrote them into the request', [
    [
      'an escaped request in the path',
      request('GET /a%20HTTP/1.1%0d%0aHost:%20e%0d%0a%0d%0aGET%20/evil'),
      refused(400),
    ],
    [
      'an escaped request in the query',
      request('GET /a?b%20HTTP/1.1%0d%0aX:%20y'),
      forwarded('GET /a?b%20HTTP/1.1%0d%0aX:%20y'),
    ],
  ]),
  ...because('CVE-2022-31150', 'undici wrote line ends in a path and in fields as they were', [
    ['a bare LF in the path', request('GET /a\nX:y'), refused(400)],
    [
      'an escaped line end in a value',
      request('GET /a', 'X-A: b%0d%0aX-B: c'),
      ...seen('x-a', 'b%0d%0aX-B: c'),
    ],
  ]),
  ...because('CVE-2013-4547', 'nginx took a blank in a target for its end in one place and not in another', [
    ['a blank and a NUL in the target', request('GET /a \0/b'), refused(400)],
    ['a blank in the target', request('GET /a /../b'), refused(400)],
  ]),
  ...because('CVE-2023-45539', 'HAProxy passed on a fragment, after which rules saw another path', [
    ['a fragment with an ending', request('GET /a#.png'), refused(400)],
  ]),
  ...because('CVE-2021-41773', 'Apache resolved dots that were escaped in part', [
    ['.%2e', request('GET /cgi-bin/.%2e/.%2e/a'), forwarded('GET /a')],
    ['%%32%65', request('GET /%%32%65%%32%65/a'), refused(400)],
  ]),
  ...because('CVE-2019-9901 and CVE-2021-29492', 'Envoy matched paths before it made them canonical', [
    ['dots and doubled slashes', request('GET //b/..//./a'), forwarded('GET ///a')],
    ['an escaped slash and a backslash', request('GET /b%2f..%5ca'), forwarded('GET /b%2f..%5ca')],
    ['the same above the root', request('GET /%2f..%5c..%5ca'), refused(400)],
  ]),
  ...because('CVE-2020-5902', 'a proxy took ..; for a name, and the server behind it for the way up', [
    ['..; above the root', request('GET /..;/a'), refused(400)],
    ['..; below the root', request('GET /b/..;/a'), forwarded('GET /b/..;/a')],
  ]),
  ...because('CVE-2021-39242', 'HAProxy kept a Host that differs from an absolute target', [
    ['Host against the target', request('GET http://a.example/a'), ...seen('host', 'a.example')],
  ]),
  ...because('CVE-2023-29406', 'Go sent a Host with line ends and blanks in it', [
    ['a Host with a slash', request('GET /a').replace('wire.example', 'a.example/ HTTP'), refused(400)],
    ['a Host with an escaped line end', request('GET /a').replace('wire.example', 'a%0d%0aX'), refused(400)],
  ]),
  ...because('CVE-2019-9900', 'Envoy let NUL into fields, where a comparison ends', [
    ['a NUL in a value', request('GET /a', 'X-A: b\0c'), refused(400)],
  ]),
  ...because('CVE-2021-32777', 'Envoy looked at the last of several lines of a field', [
    ['a repeated field', request('GET /a', 'X-A: b', 'X-A: c'), ...seen('x-a', 'b', 'c')],
  ]),
  ...because('CVE-2006-3918', 'Apache sent an expectation back as it came', [
    ['markup in Expect', request('GET /a', 'Expect: <script>alert(1)</script>'), refused(417)],
  ]),
  ...because('CERT VU#867593', 'TRACE shows scripts what they may not see (cross-site tracing)', [
    ['TRACE with a cookie', request('TRACE /a', 'Cookie: a=b'), refused(405)],
  ]),
  ...because('CVE-2016-8743', 'Apache took any white space for SP', [
    ['a form feed in the request line', 'GET\x0c/a HTTP/1.1\r\nHost: a\r\n\r\n', refused(400)],
    ['a CR in the request line', 'GET /a\rHTTP/1.1\r\nHost: a\r\n\r\n', refused(400)],
  ]),
  ...because('CVE-2018-12121', 'Node kept heads of any size', [
    [
      'a head of 100 KB',
      request('GET /a', ...Array.from({ length: 100 }, (_, i) => `X-${i}: ${'b'.repeat(1_000)}`)),
      refused(431),
    ],
  ]),
  ...because(
    'WebSocket smuggling, 2019',
    'a proxy took any answer to a handshake for a tunnel, and what followed for its bytes',
    [
      [
        'an invalid version, and a request',
        request('GET /a', ...handshake.slice(0, 2), 'Sec-WebSocket-Version: 1337', key) +
          request('GET /evil'),
        refused(426),
      ],
      ['no key, and a request', request('GET /a', ...handshake) + request('GET /evil'), refused(400)],
    ],
  ),
  ...because(
    'h2c smuggling, 2020',
    'a proxy passed on an h2c upgrade, and did not see the requests after it',
    [
      [
        'an offer of h2c',
        request('GET /a', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
        ...seen('http2-settings'),
      ],
      [
        'h2c among others',
        request('GET /a', 'Connection: Upgrade', 'Upgrade: websocket, h2c'),
        ...seen('upgrade'),
      ],
      [
        'the preface after a request',
        request('GET /a') + 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        inTurn(forwarded('GET /a'), refused(400)),
      ],
    ],
  ),
  ...because(
    'Abusing hop-by-hop fields, 2019',
    'what Connection names goes, but never what a decision rests on',
    [
      ['a key named', request('GET /a', 'Connection: x-api-key', 'X-API-Key: b'), ...seen('x-api-key')],
      [
        'a method in a field, named',
        request('GET /a', 'Connection: x-http-method-override', 'X-HTTP-Method-Override: POST'),
        ...seen('x-http-method-override'),
      ],
    ],
  ),
]
