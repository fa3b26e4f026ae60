import { because, forwarded, refused, request, type Vector } from '../vector.ts'

function withHost(...lines: string[]): string {
  return ['GET /a HTTP/1.1', ...lines, '', ''].join('\r\n')
}

const kept = (host: string) => [forwarded('GET /a'), { sees: { host: [host] } }] as const

/** RFC 9110 section 7.2 and RFC 9112 section 3.2: one host, named once, with valid characters. */
export const host: readonly Vector[] = [
  ...because('RFC 9110 section 7.2', 'what the client calls the server is told to the backend', [
    ['a name', withHost('Host: wire.example'), ...kept('wire.example')],
    ['a name and a port', withHost('Host: wire.example:8080'), ...kept('wire.example:8080')],
    ['upper case', withHost('Host: WIRE.Example'), ...kept('WIRE.Example')],
    ['a field name in capitals', withHost('HOST: wire.example'), ...kept('wire.example')],
    ['blanks around the value', withHost('Host: \t wire.example \t'), ...kept('wire.example')],
    ['no blank before the value', withHost('Host:wire.example'), ...kept('wire.example')],
    ['an IPv4 address', withHost('Host: 127.0.0.1:80'), ...kept('127.0.0.1:80')],
    ['an IPv6 address', withHost('Host: [::1]:80'), ...kept('[::1]:80')],
    ['an underscore', withHost('Host: app_1'), ...kept('app_1')],
    ['a dot at the end', withHost('Host: wire.example.'), ...kept('wire.example.')],
    ['an empty port', withHost('Host: wire.example:'), ...kept('wire.example')],
    ['after other fields', withHost('X-A: b', 'Host: wire.example'), ...kept('wire.example')],
  ]),
  ...because('RFC 9112 section 3.2', 'HTTP/1.1 without exactly one Host is answered with 400', [
    ['absent', withHost('X-A: b'), refused(400)],
    ['no field at all', 'GET /a HTTP/1.1\r\n\r\n', refused(400)],
    ['twice', withHost('Host: wire.example', 'Host: evil.example'), refused(400)],
    ['twice the same', withHost('Host: wire.example', 'Host: wire.example'), refused(400)],
    ['twice in two cases', withHost('Host: wire.example', 'hOST: evil.example'), refused(400)],
    ['twice, with an empty one', withHost('Host: wire.example', 'Host:'), refused(400)],
    [
      'twice, with fields between',
      withHost('Host: wire.example', 'X-A: b', 'Host: evil.example'),
      refused(400),
    ],
    ['twice in HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', refused(400)],
    ['a second one that is folded', withHost('Host: wire.example', ' Host: evil.example'), refused(400)],
    ['a blank before the colon', withHost('Host : wire.example'), refused(400)],
    ['a blank before the name', 'GET /a HTTP/1.1\r\n Host: wire.example\r\n\r\n', refused(400)],
    ['an escaped name', withHost('Ho%73t: wire.example'), refused(400)],
    ['an alias as the only one', withHost('H_ost: wire.example'), refused(400)],
  ]),
  ...because(
    'RFC 9112 section 3.2',
    'a Host that is not a host is answered with 400: it ends up in links and routes',
    [
      ['empty', withHost('Host:'), refused(400)],
      ['blank', withHost('Host:  \t '), refused(400)],
      ['only a port', withHost('Host: :80'), refused(400)],
      ['a path', withHost('Host: wire.example/a'), refused(400)],
      ['a query', withHost('Host: wire.example?a'), refused(400)],
      ['a fragment', withHost('Host: wire.example#a'), refused(400)],
      ['user information', withHost('Host: user@wire.example'), refused(400)],
      ['a whole address', withHost('Host: http://wire.example'), refused(400)],
      ['two in one', withHost('Host: wire.example, evil.example'), refused(400)],
      ['two without a blank', withHost('Host: wire.example,evil.example'), refused(400)],
      ['a blank inside', withHost('Host: wire.example evil.example'), refused(400)],
      ['a port in words', withHost('Host: wire.example:http'), refused(400)],
      ['port 0', withHost('Host: wire.example:0'), refused(400)],
      ['port 0 with further zeros', withHost('Host: [::1]:000'), refused(400)],
      ['a port too large', withHost('Host: wire.example:65536'), refused(400)],
      ['two ports', withHost('Host: wire.example:1:2'), refused(400)],
      ['a sign before the port', withHost('Host: wire.example:+80'), refused(400)],
      ['an escape', withHost('Host: wire%2eexample'), refused(400)],
      ['markup', withHost('Host: <script>'), refused(400)],
      ['a quote', withHost('Host: "wire.example"'), refused(400)],
      ['an apostrophe', withHost("Host: wire'example"), refused(400)],
      ['a backslash', withHost('Host: wire.example\\evil'), refused(400)],
      ['bytes beyond ASCII', withHost('Host: caf\xc3\xa9.example'), refused(400)],
      ['a NUL', withHost('Host: wire.example\0'), refused(400)],
      ['IPv6 without brackets', withHost('Host: ::1'), refused(400)],
      ['brackets around nothing', withHost('Host: []'), refused(400)],
      ['brackets around colons', withHost('Host: [:::]'), refused(400)],
      ['a zone identifier', withHost('Host: [fe80::1%25eth0]'), refused(400)],
      ['text after the brackets', withHost('Host: [::1]evil.example'), refused(400)],
      ['three hundred characters', withHost(`Host: ${'a'.repeat(300)}`), refused(400)],
    ],
  ),
  ...because(
    'RFC 9112 section 3.2',
    'an HTTP/1.0 request need not name a host; the HTTP/1.1 backend gets its own',
    [
      ['absent in HTTP/1.0', 'GET /a HTTP/1.0\r\n\r\n', forwarded('GET /a')],
      ['empty in HTTP/1.0', 'GET /a HTTP/1.0\r\nHost:\r\n\r\n', refused(400)],
    ],
  ),
  ...because(
    'RFC 9112 section 3.2.2',
    'an absolute target is believed, and a Host that says otherwise is not',
    [
      [
        'disagreeing',
        withHost('Host: evil.example').replace('/a', 'http://wire.example/a'),
        ...kept('wire.example'),
      ],
      [
        'agreeing but for the port',
        withHost('Host: wire.example:81').replace('/a', 'http://wire.example/a'),
        ...kept('wire.example'),
      ],
      [
        'disagreeing, named by the client too',
        withHost('Host: evil.example', 'X-Forwarded-Host: evil.example').replace(
          '/a',
          'http://wire.example/a',
        ),
        forwarded('GET /a'),
        { sees: { host: ['wire.example'], 'x-forwarded-host': ['wire.example'] } },
      ],
      [
        'repeated after an absolute target',
        withHost('Host: a', 'Host: b').replace('/a', 'http://wire.example/a'),
        refused(400),
      ],
    ],
  ),
  ...because('RFC 9110 section 7.6.1', 'Connection cannot take Host away', [
    [
      'named by Connection',
      request('GET /a', 'Connection: host'),
      forwarded('GET /a'),
      { sees: { host: ['wire.example'] } },
    ],
  ]),
]
