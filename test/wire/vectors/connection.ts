import { because, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

function without(...names: string[]) {
  return [forwarded('GET /a'), { sees: Object.fromEntries(names.map((name) => [name, []])) }] as const
}

const via = ['1.1 sluice']

/** RFC 9110 section 7.6 and RFC 9112 section 9: hop-by-hop headers, and headers that only the gateway sets. */
export const connection: readonly Vector[] = [
  ...because('RFC 9110 section 7.6.1', 'fields of one hop end at the gateway', [
    ['Keep-Alive', request('GET /a', 'Keep-Alive: timeout=5'), ...without('keep-alive')],
    ['Proxy-Connection', request('GET /a', 'Proxy-Connection: keep-alive'), ...without('proxy-connection')],
    [
      'Proxy-Authorization',
      request('GET /a', 'Proxy-Authorization: Basic eA=='),
      ...without('proxy-authorization'),
    ],
    ['Proxy-Authenticate', request('GET /a', 'Proxy-Authenticate: Basic'), ...without('proxy-authenticate')],
    ['TE', request('GET /a', 'TE: trailers'), ...without('te')],
    ['TE with another coding', request('GET /a', 'TE: gzip, trailers;q=0.5'), ...without('te')],
    ['Trailer', request('GET /a', 'Trailer: X-A'), ...without('trailer')],
    [
      'Trailer that names framing',
      request('GET /a', 'Trailer: Content-Length'),
      ...without('trailer', 'content-length'),
    ],
    ['Trailer that is not a name', request('GET /a', 'Trailer: (;@/'), ...without('trailer')],
    ['Upgrade without Connection', request('GET /a', 'Upgrade: websocket'), ...without('upgrade')],
    [
      'HTTP2-Settings',
      request('GET /a', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
      ...without('upgrade', 'connection', 'http2-settings'),
    ],
    ['the reserved name Close', request('GET /a', 'Close: x'), ...without('close')],
    ['Connection itself', request('GET /a', 'Connection: keep-alive'), ...without('connection')],
  ]),
  ...because(
    'RFC 9110 section 7.6.1',
    'what Connection names goes with it, in any letter case and over several lines',
    [
      ['a field that is named', request('GET /a', 'Connection: X-A', 'X-A: b'), ...without('x-a')],
      ['named in another case', request('GET /a', 'Connection: x-A', 'X-a: b'), ...without('x-a')],
      [
        'named among others',
        request('GET /a', 'Connection: close , X-A,keep-alive', 'X-A: b'),
        ...without('x-a'),
      ],
      [
        'named in a second line',
        request('GET /a', 'Connection: keep-alive', 'Connection: X-A', 'X-A: b'),
        ...without('x-a'),
      ],
      ['named in a list of nothing', request('GET /a', 'Connection: ,,X-A,,', 'X-A: b'), ...without('x-a')],
      [
        'all lines of a named header',
        request('GET /a', 'Connection: X-A', 'X-A: b', 'X-A: c'),
        ...without('x-a'),
      ],
      [
        'a cookie that is named',
        request('GET /a', 'Connection: cookie', 'Cookie: a=b'),
        ...without('cookie'),
      ],
      [
        'an option that names nothing',
        request('GET /a', 'Connection: X-B', 'X-A: b'),
        forwarded('GET /a'),
        { sees: { 'x-a': ['b'] } },
      ],
      ['Connection that names itself', request('GET /a', 'Connection: connection'), ...without('connection')],
      [
        'an empty Connection',
        request('GET /a', 'Connection:', 'X-A: b'),
        forwarded('GET /a'),
        { sees: { 'x-a': ['b'] } },
      ],
      [
        'a Connection that is not a list of names',
        request('GET /a', 'Connection: "X-A";, (', 'X-A: b'),
        forwarded('GET /a'),
        { sees: { 'x-a': ['b'] } },
      ],
    ],
  ),
  ...because('RFC 9110 section 7.6.1', 'naming what the gateway sets, or framing, takes nothing of it away', [
    [
      'X-Forwarded-For named',
      request('GET /a', 'Connection: x-forwarded-for, x-real-ip', 'X-Forwarded-For: 9.9.9.9'),
      forwarded('GET /a'),
      { sees: { via } },
    ],
    ['Via named', request('GET /a', 'Connection: via'), forwarded('GET /a'), { sees: { via } }],
    [
      'Content-Length named',
      request('POST /a', 'Connection: content-length', 'Content-Length: 2') + 'hi',
      forwarded('POST /a hi'),
      { sees: { 'content-length': ['2'] } },
    ],
    [
      'Transfer-Encoding named',
      request('POST /a', 'Connection: transfer-encoding', 'Transfer-Encoding: chunked') +
        '2\r\nhi\r\n0\r\n\r\n',
      forwarded('POST /a hi'),
      { sees: { framed: ['once'] } },
    ],
  ]),
  ...because('RFC 7239 section 8.1', 'nobody but the gateway says who the client is', [
    [
      'X-Forwarded-For',
      request('GET /a', 'X-Forwarded-For: 9.9.9.9', 'X-Forwarded-For: 8.8.8.8'),
      forwarded('GET /a'),
    ],
    ['X-Real-IP', request('GET /a', 'X-Real-IP: 9.9.9.9'), forwarded('GET /a')],
    ['Forwarded', request('GET /a', 'Forwarded: for=9.9.9.9;host=evil.example'), ...without('forwarded')],
    [
      'X-Forwarded-Host',
      request('GET /a', 'X-Forwarded-Host: evil.example'),
      forwarded('GET /a'),
      { sees: { 'x-forwarded-host': ['wire.example'] } },
    ],
    [
      'X-Forwarded-Proto',
      request('GET /a', 'X-Forwarded-Proto: https'),
      forwarded('GET /a'),
      { sees: { 'x-forwarded-proto': ['http'] } },
    ],
    ['X-Forwarded-Port', request('GET /a', 'X-Forwarded-Port: 443'), ...without('x-forwarded-port')],
    [
      'X-Forwarded-Prefix and whatever else begins so',
      request('GET /a', 'X-Forwarded-Prefix: /evil', 'X-Forwarded-Ssl: on', 'X_Forwarded_Prefix: /evil'),
      ...without('x-forwarded-prefix', 'x-forwarded-ssl', 'x_forwarded_prefix'),
    ],
    [
      'a path in a field',
      request('GET /a', 'X-Original-URL: /evil', 'X-Rewrite-URL: /evil', 'X_Original_URL: /evil'),
      ...without('x-original-url', 'x-rewrite-url', 'x_original_url'),
    ],
    [
      'with underscores',
      request('GET /a', 'X_Forwarded_For: 9.9.9.9', 'X_Real_IP: 9.9.9.9', 'X-Forwarded_Proto: https'),
      ...without('x_forwarded_for', 'x_real_ip', 'x-forwarded_proto'),
    ],
    [
      'with dots',
      request('GET /a', 'X.Forwarded.For: 9.9.9.9', 'X.Real.IP: 9.9.9.9'),
      ...without('x.forwarded.for', 'x.real.ip'),
    ],
    [
      'with other punctuation',
      request('GET /a', 'X~Real~IP: 9.9.9.9', "X'Forwarded'For: 9.9.9.9", 'Content^Length: 9'),
      ...without('x~real~ip', "x'forwarded'for", 'content^length'),
    ],
    [
      'a method in a field, with underscores',
      request('GET /a', 'X_HTTP_Method_Override: POST'),
      ...without('x_http_method_override'),
    ],
    [
      'an underscore that aliases nothing',
      request('GET /a', 'api_key: b', 'SCRIPT_NAME: /x', 'path.info: /x'),
      ...without('api_key', 'script_name', 'path.info'),
    ],
    [
      'a prefix, an address, a user in a field',
      request(
        'GET /a',
        'X-Script-Name: /x',
        'X-Vhm-Root: /x',
        'X-Scheme: https',
        'CF-Connecting-IP: 9.9.9.9',
        'X-Remote-User: admin',
        'Remote-Groups: admins',
        'Client-Cert: :bm9uZQ==:',
      ),
      ...without(
        'x-script-name',
        'x-vhm-root',
        'x-scheme',
        'cf-connecting-ip',
        'x-remote-user',
        'remote-groups',
        'client-cert',
      ),
    ],
    ['Proxy', request('GET /a', 'Proxy: http://evil.example'), ...without('proxy')],
    [
      'what applications use of ordinary clients',
      request(
        'GET /a',
        'X-Requested-With: XMLHttpRequest',
        'X-API-Key: k',
        'X-Auth-Token: t',
        'X-User-Id: 7',
      ),
      forwarded('GET /a'),
      {
        sees: {
          'x-requested-with': ['XMLHttpRequest'],
          'x-api-key': ['k'],
          'x-auth-token': ['t'],
          'x-user-id': ['7'],
        },
      },
    ],
  ]),
  ...because('RFC 9110 section 7.6.3', 'Via says who passed the request on, and in which version', [
    ['Via', request('GET /a'), forwarded('GET /a'), { sees: { via } }],
    [
      'Via from HTTP/1.0',
      'GET /a HTTP/1.0\r\nHost: a\r\n\r\n',
      forwarded('GET /a'),
      { sees: { via: ['1.0 sluice'] } },
    ],
    [
      'Via of others before it',
      request('GET /a', 'Via: 1.0 one', 'Via: 1.1 two (x)'),
      forwarded('GET /a'),
      { sees: { via: ['1.0 one, 1.1 two (x), 1.1 sluice'] } },
    ],
    ['an empty Via', request('GET /a', 'Via:'), forwarded('GET /a'), { sees: { via } }],
  ]),
  ...because('RFC 9112 section 9.3', 'a connection goes on or ends as both sides have said', [
    ['close', request('GET /a', 'Connection: close'), forwarded('GET /a'), { says: 'Connection: close' }],
    [
      'close among others',
      request('GET /a', 'Connection: x, Close'),
      forwarded('GET /a'),
      { says: 'Connection: close' },
    ],
    [
      'a second request after close',
      request('GET /a', 'Connection: close') + request('GET /b'),
      forwarded('GET /a'),
    ],
    ['bytes after close', request('GET /a', 'Connection: close') + 'nonsense', forwarded('GET /a')],
    ['HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: a\r\n\r\n', forwarded('GET /a'), { says: 'Connection: close' }],
    [
      'HTTP/1.0 that goes on',
      'GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n',
      forwarded('GET /a'),
      { says: 'Connection: keep-alive' },
    ],
    [
      'a second request after HTTP/1.0',
      'GET /a HTTP/1.0\r\nHost: a\r\n\r\n' + request('GET /b'),
      forwarded('GET /a'),
    ],
    [
      'HTTP/1.0 and HTTP/1.1 in turn',
      'GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n' + request('GET /b'),
      forwarded('GET /a', 'GET /b'),
    ],
    [
      'close and keep-alive',
      request('GET /a', 'Connection: close, keep-alive') + request('GET /b'),
      forwarded('GET /a'),
    ],
    [
      'a refusal, and the connection goes on',
      request('GET /%zz') + request('GET /b'),
      inTurn(refused(400), forwarded('GET /b')),
    ],
  ]),
]
