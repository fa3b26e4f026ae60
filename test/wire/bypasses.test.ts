import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { valuesOf } from '../support/http/lenient-requests.ts'
import { converse, freshAddress } from '../support/http/raw-client.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'

// The attack: a client whose limit is used up sends the same request in another spelling. Every spelling here was a way around some
// limiter. A client that has used its one request sends each of them; it must be refused, and the backend must see nothing.

let backend: RecordingBackend
let gateway: HostedGateway
/** Trusts the clients' X-Forwarded-For. */
let behindProxy: HostedGateway

beforeAll(async () => {
  backend = await startRecordingBackend()
  const settings = { UPSTREAM_URL: backend.url, CONFIG_FILE: 'test/wire/one-each.yaml' }
  gateway = await startHosted(settings)
  behindProxy = await startHosted({ ...settings, TRUSTED_PROXIES: '127.0.0.0/8' })
})

afterAll(() => backend.close())

async function statusOf(port: number, from: string, bytes: string): Promise<number | undefined> {
  const toHead = bytes.startsWith('HEAD')
  const { responses } = await converse(port, [bytes], { from, responses: 1, toHead })
  return responses[0]?.status
}

function post(target: string, ...lines: string[]): string {
  return [`POST ${target} HTTP/1.1`, 'Host: a', 'Content-Length: 0', ...lines, '', ''].join('\r\n')
}

function get(target: string, ...lines: string[]): string {
  return [`GET ${target} HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n')
}

const handshakeLines = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** Spellings of a path of one segment. They are refused as over the limit, unless they are not valid targets. */
const spellings: readonly (readonly [(path: string) => string, number?])[] = [
  [(path) => path],
  [(path) => `/${path}`],
  [(path) => `//${path}`],
  [(path) => `/.${path}`],
  [(path) => `/././.${path}`],
  [(path) => `/a/..${path}`],
  [(path) => `/a/b/../..${path}`],
  [(path) => `/..${path}`],
  [(path) => `/%2e%2e${path}`],
  [(path) => `/%2E${path}`],
  [(path) => `/a/%2e.${path}`],
  [(path) => `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`],
  [(path) => `/${Array.from(path.slice(1), (letter) => `%${letter.charCodeAt(0).toString(16)}`).join('')}`],
  [(path) => path.toUpperCase()],
  [(path) => `/${path.charAt(1).toUpperCase()}${path.slice(2)}`],
  [(path) => `${path}/`],
  [(path) => `${path}//`],
  [(path) => `${path}/.`],
  [(path) => `${path}/x/..`],
  [(path) => `${path}%2f`],
  [(path) => `/%2f${path.slice(1)}`],
  [(path) => `/a%2f..${path}`],
  [(path) => `${path};x`],
  [(path) => `${path};x=y/`],
  [(path) => `${path}%3bx`],
  [(path) => `${path};/x`],
  [(path) => `${path};x/y/z`],
  [(path) => `${path};%2fx`],
  [(path) => `${path}%3b/x`],
  [(path) => `${path}%3F/x`],
  [(path) => `${path}%23x`],
  [(path) => `/;x${path}`],
  [(path) => `/a/..;${path}`],
  [(path) => `${path}?`],
  [(path) => `${path}?x=y`],
  [(path) => `${path}%20`],
  [(path) => `${path}%0a`, 400],
  [(path) => `${path}%0d%0a`, 400],
  [(path) => `${path}%250d%250a`, 400],
  [(path) => `${path}%5c`],
  [(path) => `/\\${path.slice(1)}`],
  [(path) => `${path}&x=1`],
  [(path) => `${path}%26x/y`],
  [(path) => `${path}%2526x`],
  [(path) => `/%25${path.charCodeAt(1).toString(16)}${path.slice(2)}`],
  [
    (path) =>
      `/%25%3${Math.floor(path.charCodeAt(1) / 16)}${(path.charCodeAt(1) % 16).toString(16)}${path.slice(2)}`,
  ],
  [(path) => `${path}%252f`],
  [(path) => `/a%255c..${path.replace('/', '%252F')}`],
  [(path) => `//other.example${path}`],
  [(path) => `/index.php${path}`],
  [(path) => `${path}/index.php`],
  [(path) => `/https%3A//other.example${path}`],
  [(path) => `${path}.`],
  [(path) => `http://a${path}`],
  [(path) => `http://other.example${path}`],
  [(path) => `HTTP://A/${path}`],
  [(path) => `http://a/b/..${path}?x`],
  [(path) => `/..;${path}`, 400],
  [(path) => `${path}#`, 400],
  [(path) => `${path}#x`, 400],
  [(path) => `${path}%00`, 400],
  [(path) => `/\\..${path}`, 400],
  [(path) => `/a/..%5c..${path}`, 400],
  [(path) => `/%252e%252e/..${path}%`, 400],
  [(path) => `/http://a${path}`, 400],
]

describe('another spelling of the path', () => {
  test.each(spellings.map(([spell, status = 429]) => [spell('/login'), status, spell] as const))(
    '%j is refused with %i',
    async (target, status, spell) => {
      const from = freshAddress()
      expect(await statusOf(gateway.port, from, post('/login'))).toBe(200)
      expect(await statusOf(gateway.port, from, post(target))).toBe(status)
      expect(await statusOf(gateway.port, from, get('/page'))).toBe(200)
      const page = spell('/page')
      expect(await statusOf(gateway.port, from, get(page)), page).toBe(status)
      expect(await statusOf(gateway.port, from, get(page).replace('GET', 'HEAD')), `HEAD ${page}`).toBe(
        status,
      )
      expect(await statusOf(gateway.port, from, get(page, ...handshakeLines)), `WebSocket ${page}`).toBe(
        status,
      )
      expect(backend.requestsFrom(from).map(({ method, target: seen }) => `${method} ${seen}`)).toEqual([
        'POST /login',
        'GET /page',
      ])
    },
  )

  test.each([
    '/api%2flogin',
    '/api%2Flogin',
    '/API%2fLOGIN/',
    '/api/%2flogin',
    '/x%2f..%2fapi/login',
    '/api;x%2flogin',
  ])('%j is /api/login', async (target) => {
    const from = freshAddress()
    expect(await statusOf(gateway.port, from, post('/api/login'))).toBe(200)
    expect(await statusOf(gateway.port, from, post(target))).toBe(429)
    expect(backend.requestsFrom(from)).toHaveLength(1)
  })
})

describe('another form of the request', () => {
  const table: [name: string, bytes: string, status: number][] = [
    ['another method in a field', get('/login', 'X-HTTP-Method-Override: POST'), 429],
    ['in a second field', get('/login', 'X-HTTP-Method: GET', 'X-Method-Override: post'), 429],
    [
      'in two lines of a field',
      get('/login', 'X-HTTP-Method-Override: PUT', 'X-HTTP-Method-Override: POST'),
      429,
    ],
    ['two Host fields', post('/login', 'Host: b'), 400],
    ['another Host', post('/login').replace('Host: a', 'Host: b.example'), 429],
    ['X-Forwarded-For', post('/login', 'X-Forwarded-For: 9.9.9.9'), 429],
    [
      'X-Forwarded-For in several lines',
      post('/login', 'X-Forwarded-For: 9.9.9.9', 'X-Forwarded-For: 8.8.8.8'),
      429,
    ],
    ['X-Real-IP', post('/login', 'X-Real-IP: 9.9.9.9'), 429],
    ['Forwarded', post('/login', 'Forwarded: for=9.9.9.9'), 429],
    [
      'True-Client-IP and others',
      post('/login', 'True-Client-IP: 9.9.9.9', 'CF-Connecting-IP: 9.9.9.9'),
      429,
    ],
    ['Connection that names our own field', post('/login', 'Connection: x-forwarded-for, x-real-ip'), 429],
    ['a __proto__ field', post('/login', '__proto__: x', 'constructor: x'), 429],
    ['content', post('/login').replace('Length: 0\r\n\r\n', 'Length: 2\r\n\r\nhi'), 429],
    [
      'chunked content',
      post('/login').replace('Content-Length: 0', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
      429,
    ],
    ['an expectation', post('/login', 'Expect: 100-continue').replace('Length: 0', 'Length: 2'), 429],
    ['HTTP/1.0', 'POST /login HTTP/1.0\r\n\r\n', 429],
    ['HTTP/0.9', 'POST /login\r\n\r\n', 505],
    ['two blanks', post('/login').replace(' /login', '  /login'), 400],
    ['lower case', post('/login').replace('POST', 'post'), 400],
  ]
  test.each(table)('%s', async (_, bytes, status) => {
    const from = freshAddress()
    expect(await statusOf(gateway.port, from, post('/login'))).toBe(200)
    expect(await statusOf(gateway.port, from, bytes)).toBe(status)
    expect(backend.requestsFrom(from)).toHaveLength(1)
  })

  test('an alias of a field that overrides the method does not reach the backend', async () => {
    const from = freshAddress()
    expect(await statusOf(gateway.port, from, get('/login', 'X_HTTP_Method_Override: POST'))).toBe(200)
    const [seen] = backend.requestsFrom(from)
    expect(seen?.fields.map(([name]) => name)).not.toContain('x_http_method_override')
  })
})

describe('another spelling of the client address', () => {
  const clients: [name: string, first: string, second: readonly string[]][] = [
    [
      'IPv4',
      '1.2.3.4',
      ['::ffff:1.2.3.4', '::ffff:102:304', '[::ffff:1.2.3.4]', '1.2.3.4:80', '0:0:0:0:0:ffff:0102:0304'],
    ],
    [
      'IPv4 after what a client wrote',
      '1.2.3.5',
      [
        '9.9.9.9, 1.2.3.5',
        'unknown, 1.2.3.5',
        ' 1.2.3.5 ',
        ',,1.2.3.5',
        '9.9.9.9\r\nX-Forwarded-For: 1.2.3.5',
      ],
    ],
    [
      'IPv6',
      '2001:db8::1',
      [
        '2001:DB8::1',
        '2001:db8:0:0:0:0:0:1',
        '[2001:db8::1]',
        '[2001:db8::1]:80',
        '2001:db8::2',
        '2001:db8::ffff:ffff',
      ],
    ],
  ]
  test.each(clients)('%s', async (_, first, others) => {
    const from = freshAddress()
    expect(await statusOf(behindProxy.port, from, post('/login', `X-Forwarded-For: ${first}`))).toBe(200)
    for (const other of others)
      expect(await statusOf(behindProxy.port, from, post('/login', `X-Forwarded-For: ${other}`)), other).toBe(
        429,
      )
  })

  test('a thousand addresses of one /64', async () => {
    const from = freshAddress()
    const statuses = new Map<number | undefined, number>()
    const requests = Array.from({ length: 1_000 }, (_, host) =>
      post('/login', `X-Forwarded-For: 2001:db8:0:64:${(host + 1).toString(16)}::${(host + 1).toString(16)}`),
    )
    // On ten connections, one after another: a connection for each request would take longer than all other tests here.
    for (let at = 0; at < requests.length; at += 100) {
      const pieces = requests.slice(at, at + 100)
      const { responses } = await converse(behindProxy.port, pieces, { from, responses: pieces.length })
      for (const { status } of responses) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect(statuses).toEqual(
      new Map([
        [200, 1],
        [429, 999],
      ]),
    )
  })

  test('an address that is gone when the request is read', async () => {
    const from = freshAddress()
    const before = backend.requests.length
    const askAndReset = (): Promise<void> =>
      new Promise((resolve) => {
        const client = connect({ host: '127.0.0.1', port: gateway.port, localAddress: from })
        client.on('error', () => undefined)
        client.on('close', () => resolve())
        client.on('connect', () => client.write(post('/login'), () => client.resetAndDestroy()))
      })
    // While the gateway reads one connection, others are reset before it accepts them.
    for (let round = 0; round < 50; round++) await Promise.all(Array.from({ length: 20 }, askAndReset))
    await statusOf(gateway.port, from, post('/login'))
    const arrived = backend.requests.slice(before).flatMap((request) => valuesOf(request, 'x-real-ip'))
    // No request arrives if the allowed one was reset before the gateway had a connection to the backend.
    expect(arrived).toEqual(arrived.length === 0 ? [] : [from])
  })

  test('parts of a key do not run together', async () => {
    const from = freshAddress()
    expect(await statusOf(gateway.port, from, post('/pair', 'X-One: a:b', 'X-Two: c'))).toBe(200)
    expect(await statusOf(gateway.port, from, post('/pair', 'X-One: a', 'X-Two: b:c'))).toBe(200)
    expect(await statusOf(gateway.port, from, post('/pair', 'X-One: a', 'X-Two: b:c'))).toBe(429)
    expect(await statusOf(gateway.port, from, post('/pair', 'X-One: a:b', 'X_Two: c', 'X-Two: c'))).toBe(429)
  })
})

describe.each(['/site', '/by-host'])('another spelling of the host, for %s', (path) => {
  const at = (host: string, target = path): string => post(target).replace('Host: a', `Host: ${host}`)
  const spellings: [name: string, bytes: string, status: number][] = [
    ['letter case', at('SITE.Example'), 429],
    ['a dot at the end', at('site.example.'), 429],
    ['several dots at the end', at('site.example...'), 429],
    ['a port', at('site.example:8080'), 429],
    ['an empty port', at('site.example:'), 429],
    ['a dot and a port', at('Site.example.:80'), 429],
    ['blanks around it', at(' site.example\t'), 429],
    [
      'an absolute target, whose host is the one that counts',
      at('other.example', `http://site.example${path}`),
      429,
    ],
    ['an absolute target with a port', at('b', `HTTP://SITE.example.:80${path}`), 429],
    ['escapes', at('site%2eexample'), 400],
    ['user information', at('x@site.example'), 400],
    ['a path', at('site.example/x'), 400],
    ['a list', at('site.example,other.example'), 400],
    ['two lines', at('site.example\r\nHost: other.example'), 400],
    ['none', post(path).replace('Host: a\r\n', ''), 400],
  ]
  test.each(spellings)('%s', async (_, bytes, status) => {
    const from = freshAddress()
    expect(await statusOf(gateway.port, from, at('site.example'))).toBe(200)
    expect(await statusOf(gateway.port, from, bytes)).toBe(status)
    expect(backend.requestsFrom(from)).toHaveLength(1)
  })

  test('X-Forwarded-Host changes nothing', async () => {
    const from = freshAddress()
    const lines = ['X-Forwarded-Host: other.example', 'Forwarded: host=other.example']
    const bytes = post(path, ...lines).replace('Host: a', 'Host: site.example')
    expect(await statusOf(gateway.port, from, bytes)).toBe(200)
    expect(await statusOf(gateway.port, from, bytes.replaceAll('other', 'another'))).toBe(429)
    const [seen] = backend.requestsFrom(from)
    expect(seen && valuesOf(seen, 'x-forwarded-host')).toEqual(['site.example'])
  })
})

let values = 0
/** A value that no other test uses, beginning with a letter. */
const newValue = (): string => `v${++values}x`
const firstEscaped = (value: string): string => `%${value.charCodeAt(0).toString(16)}${value.slice(1)}`

type Spelling = readonly [name: string, spell: (value: string) => string, status?: number]

/** Tests requests of a client that has used its one request, in spellings that some backend attributes to the same client. */
function describeSpellings(
  what: string,
  plainly: (value: string) => string,
  spellings: readonly Spelling[],
): void {
  describe(what, () => {
    const rows = spellings.map(([name, spell, status = 429]) => [name, spell, status] as const)
    test.each(rows)('%s', async (_, spell, status) => {
      const [from, value] = [freshAddress(), newValue()]
      expect(await statusOf(gateway.port, from, plainly(value))).toBe(200)
      expect(await statusOf(gateway.port, from, spell(value))).toBe(status)
      expect(backend.requestsFrom(from)).toHaveLength(1)
      expect(await statusOf(gateway.port, from, plainly(newValue()))).toBe(200)
    })
  })
}

const withQuery = (query: string): string => post(`/by-query?${query}`)

describeSpellings('another spelling of a query parameter', (value) => withQuery(`user=${value}`), [
  ['the same', (value) => withQuery(`user=${value}`)],
  ['a parameter before', (value) => withQuery(`x=1&user=${value}`)],
  ['a parameter after', (value) => withQuery(`user=${value}&${newValue()}=${newValue()}`)],
  ['an escape in the value', (value) => withQuery(`user=${firstEscaped(value)}`)],
  ['an escape of two levels', (value) => withQuery(`user=${firstEscaped(value).replace('%', '%25')}`)],
  ['an escape as IIS has it', (value) => withQuery(`user=%u0076${value.slice(1)}`)],
  ['an escape in the name', (value) => withQuery(`%75ser=${value}`)],
  ['letter case of the name', (value) => withQuery(`USER=${value}`)],
  ['letter case of the value', (value) => withQuery(`user=${value.toUpperCase()}`)],
  ['another value before', (value) => withQuery(`user=${newValue()}&user=${value}`)],
  ['another value after', (value) => withQuery(`user=${value}&user=${newValue()}`)],
  ['other values around', (value) => withQuery(`user=${newValue()}&user=${value}&USER=${newValue()}`)],
  ['an empty value after', (value) => withQuery(`user=${value}&user=`)],
  ['an empty value before', (value) => withQuery(`user&user=&user=${value}`)],
  ['a list of PHP', (value) => withQuery(`user[]=${value}`)],
  ['a list of PHP, escaped', (value) => withQuery(`user%5B0%5D=${value}`)],
  ['blanks before the name', (value) => withQuery(`+%20user=${value}`)],
  ['a NUL after the name', (value) => withQuery(`user%00x=${value}`)],
  ['a NUL after the value', (value) => withQuery(`user=${value}%00${newValue()}`)],
  ['; as a separator', (value) => withQuery(`x=1;user=${value}`)],
  ['; after the value', (value) => withQuery(`user=${value};x=${newValue()}`)],
  ['blanks around the value', (value) => withQuery(`user=+${value}%20%09`)],
  ['empty parameters', (value) => withQuery(`&&=&user=${value}&`)],
  ['a second question mark', (value) => post(`/by-query??user=${value}`)],
  ['an escaped question mark in the path', (value) => post(`/by-query%3Fuser=${value}`)],
  ['the same in lower case', (value) => post(`/by-query%3fuser=${value}`)],
  ['an ampersand in the path, as to a rewrite rule', (value) => post(`/by-query&user=${value}`)],
  ['an escaped one', (value) => post(`/by-query%26user=${value}`)],
  ['one escaped twice', (value) => post(`/by-query%2526a%253Duser%2526user%253D${value}`)],
  ['another path', (value) => post(`//BY-QUERY/;x?user=${value}`)],
  ['an absolute target', (value) => post(`http://a/by-query?user=${value}`)],
  [
    'more values than anybody sends',
    (value) =>
      withQuery([value, ...Array.from({ length: 9 }, newValue)].map((each) => `user=${each}`).join('&')),
    400,
  ],
])

test('a plus, a blank and their escapes in a query are the same', async () => {
  const [from, value] = [freshAddress(), newValue()]
  expect(await statusOf(gateway.port, from, withQuery(`user=${value}+b`))).toBe(200)
  for (const blank of ['%20', '+', '%2B', '%2b', '%252B'])
    expect(await statusOf(gateway.port, from, withQuery(`user=${value}${blank}b`)), blank).toBe(429)
})

const withCookie = (...lines: string[]): string =>
  post('/by-cookie', ...lines.map((line) => `Cookie: ${line}`))

describeSpellings('another spelling of a cookie', (value) => withCookie(`sid=${value}`), [
  ['the same', (value) => withCookie(`sid=${value}`)],
  ['among others', (value) => withCookie(`a=1; sid=${value}; ${newValue()}=${newValue()}`)],
  ['without blanks', (value) => withCookie(`a=1;sid=${value};b=2`)],
  ['blanks around everything', (value) => withCookie(`a=1 ;\tsid = ${value} ; b`)],
  ['in quotes', (value) => withCookie(`sid="${value}"`)],
  ['in one quote', (value) => withCookie(`sid="${value}`)],
  ['an octal escape in quotes', (value) => withCookie(`sid="\\166${value.slice(1)}"`)],
  ['a backslash in quotes', (value) => withCookie(`sid="\\${value}"`)],
  ['a percent escape', (value) => withCookie(`sid=${firstEscaped(value)}`)],
  ['letter case of the name', (value) => withCookie(`SID=${value}`)],
  ['an escaped name', (value) => withCookie(`%73id=${value}`)],
  ['another value before', (value) => withCookie(`sid=${newValue()}; sid=${value}`)],
  ['another value after', (value) => withCookie(`sid=${value}; sid=${newValue()}`)],
  ['in several lines', (value) => withCookie(`sid=${newValue()}`, `a=1`, `sid=${value}`)],
  ['after a comma', (value) => withCookie(`a=1, sid=${value}`)],
  ['before a comma', (value) => withCookie(`sid=${value}, b=${newValue()}`)],
  ['before a blank', (value) => withCookie(`sid=${value} ${newValue()}`)],
  ['a list of PHP', (value) => withCookie(`sid[]=${value}`)],
  ['in the quotes of another cookie', (value) => withCookie(`a="x; sid=${value}; b"`)],
  ['attributes of RFC 2109', (value) => withCookie(`$Version=1; sid="${value}"; $Path="/${newValue()}"`)],
  [
    'more values than anybody sends',
    (value) =>
      withCookie([value, ...Array.from({ length: 9 }, newValue)].map((each) => `sid=${each}`).join('; ')),
    400,
  ],
])

describeSpellings('another spelling of a path segment', (value) => post(`/by-path/${value}`), [
  ['the same', (value) => post(`/by-path/${value}`)],
  ['an escape', (value) => post(`/by-path/${firstEscaped(value)}`)],
  ['letter case', (value) => post(`/BY-path/${value.toUpperCase()}`)],
  ['a slash at the end', (value) => post(`/by-path/${value}/`)],
  ['slashes', (value) => post(`//by-path///${value}//`)],
  ['dot segments', (value) => post(`/by-path/./x/../${value}/.`)],
  ['escaped dot segments', (value) => post(`/by-path/x%2f..%2f${value}`)],
  ['parameters', (value) => post(`/by-path/${value};${newValue()}`)],
  ['parameters, escaped', (value) => post(`/by-path/${value}%3B${newValue()}`)],
  ['parameters before', (value) => post(`/by-path;${newValue()}/${value}`)],
  ['dot segments after parameters', (value) => post(`/by-path/${value};a%2F..%2F${newValue()}`)],
  ['dot segments in parameters', (value) => post(`/by-path/${newValue()};a%2F..%2F${value}`)],
  ['an escaped query', (value) => post(`/by-path/${value}%3F${newValue()}`)],
  ['an escaped fragment', (value) => post(`/by-path/${value}%23${newValue()}`)],
  ['a blank at the end', (value) => post(`/by-path/${value}%20`)],
  ['a line end at the end', (value) => post(`/by-path/${value}%0A`), 400],
  ['an extension', (value) => post(`/by-path/${value}.json`)],
  [
    'an escape of two levels',
    (value) => post(`/by-path/%25${value.charCodeAt(0).toString(16)}${value.slice(1)}`),
  ],
  ['a backslash', (value) => post(`/by-path\\${value}%5C`)],
  ['a parameter of a rewrite rule', (value) => post(`/by-path/${value}&x=${newValue()}`)],
  ['a host', (value) => post(`//other.example/by-path/${value}`)],
  ['a script', (value) => post(`/index.php/by-path/${value}`)],
  ['dots at the end', (value) => post(`/by-path/${value}..`)],
  ['a query', (value) => post(`/by-path/${value}?${newValue()}`)],
  ['the other pattern', (value) => post(`/by-path/of/${value}/x`)],
  ['the other pattern, and an escaped slash', (value) => post(`/by-path/of/${value}%2F${newValue()}`)],
  ['an absolute target', (value) => post(`http://a/by-path/${value}`)],
])

test.each(['X-One', 'Authorization'])(
  '%s in several lines is forwarded and counted as one value',
  async (name) => {
    const from = freshAddress()
    const target = name === 'X-One' ? '/pair' : '/authorized'
    const lines = (...values: string[]): string[] => [
      ...values.map((value) => `${name}: ${value}`),
      'X-Two: c',
    ]
    expect(await statusOf(gateway.port, from, post(target, ...lines('a')))).toBe(200)
    expect(await statusOf(gateway.port, from, post(target, ...lines('a')))).toBe(429)
    // A backend may take the last word for the token, and that token has been used already.
    const both = name === 'X-One' ? 200 : 429
    expect(await statusOf(gateway.port, from, post(target, ...lines('b', 'a')))).toBe(both)
    expect(await statusOf(gateway.port, from, post(target, ...lines('d', 'c')))).toBe(200)
    expect(await statusOf(gateway.port, from, post(target, ...lines('d', 'c')))).toBe(429)
    const seen = backend.requestsFrom(from).at(-1)
    expect(seen && valuesOf(seen, name.toLowerCase())).toEqual(['d, c'])
  },
)

test('all spellings of a token count as one client, and are forwarded as they were sent', async () => {
  const from = freshAddress()
  const authorized = (value: string): string => post('/authorized', `Authorization: ${value}`)
  expect(await statusOf(gateway.port, from, authorized('BEARER  token-1'))).toBe(200)
  for (const value of [
    'Bearer token-1',
    'bearer token-1',
    'bEaReR \t token-1',
    'Bearer token-1 x',
    'Bearer\xa0token-1',
  ])
    expect(await statusOf(gateway.port, from, authorized(value)), value).toBe(429)
  expect(await statusOf(gateway.port, from, authorized('Bearer TOKEN-1'))).toBe(200)
  expect(backend.requestsFrom(from).flatMap((request) => valuesOf(request, 'authorization'))).toEqual([
    'BEARER  token-1',
    'Bearer TOKEN-1',
  ])
})

test('pipelined requests are counted one by one, and only allowed ones reach the backend', async () => {
  const from = freshAddress()
  const { responses } = await converse(gateway.port, [post('/login').repeat(20)], { from, responses: 20 })
  expect(responses.map(({ status }) => status)).toEqual([200, ...Array.from({ length: 19 }, () => 429)])
  expect(backend.requestsFrom(from)).toHaveLength(1)
})

test('no request that reached the backend can be read in two ways', () => {
  expect(backend.faults()).toEqual([])
})
