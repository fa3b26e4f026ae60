import { expect, test } from 'vitest'
import type { LoggedRequest } from '../../../../proxy/cli/replay/logs/logged-request.ts'
import { lineReader } from '../../../../proxy/cli/replay/logs/formats.ts'

const read = lineReader('auto')

// Lines from the documentation of these servers, or in the documented format.
test.each([
  [
    'Apache, common (mod_log_config)',
    '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
    {
      timeMs: Date.UTC(2000, 9, 10, 20, 55, 36),
      ip: '127.0.0.1',
      method: 'GET',
      target: '/apache_pb.gif',
      status: 200,
    },
    'common',
  ],
  [
    'Apache and nginx, combined',
    '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
    {
      target: '/apache_pb.gif',
      durationMs: undefined,
      host: undefined,
      headers: {
        referer: 'http://www.example.com/start.html',
        'user-agent': 'Mozilla/4.08 [en] (Win98; I ;Nav)',
      },
    },
    'combined',
  ],
  [
    'Apache, vhost_combined',
    'app.example.com:443 2001:db8::7 - - [01/Mar/2026:00:00:00 +0100] "POST /a?b=c HTTP/2.0" 401 - "-" "-"',
    {
      timeMs: Date.UTC(2026, 1, 28, 23),
      host: 'app.example.com:443',
      ip: '2001:db8::7',
      status: 401,
      headers: {},
    },
    'combined',
  ],
  [
    'nginx, with a host before it that is an address, as scanners send it',
    '198.51.100.1 192.0.2.7 - - [01/Mar/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-"',
    { host: '198.51.100.1', ip: '192.0.2.7' },
    'combined',
  ],
  [
    'nginx, with a user name that the client has chosen',
    '192.0.2.7 - a [b [01/Mar/2026:00:00:00 +0000] "GET / HTTP/1.1" 401 5 "-" "-"',
    { timeMs: Date.UTC(2026, 2, 1), ip: '192.0.2.7', target: '/' },
    'combined',
  ],
  [
    'nginx, main of its example: with X-Forwarded-For',
    '10.0.0.1 - - [01/Mar/2026:00:00:00 +0000] "GET /a\\x22b HTTP/1.1" 200 5 "-" "say \\"hi\\"" "192.0.2.7, 10.0.0.2"',
    { target: '/a"b', headers: { 'user-agent': 'say "hi"', 'x-forwarded-for': '192.0.2.7, 10.0.0.2' } },
    'combined',
  ],
  [
    'nginx, with all fields in quotes',
    '192.0.2.7 - - [01/Mar/2026:00:00:00 +0000] "GET /a HTTP/1.1" "404" "123" "http://r/" "curl/8.5.0" "192.0.2.8"',
    {
      status: 404,
      headers: { referer: 'http://r/', 'user-agent': 'curl/8.5.0', 'x-forwarded-for': '192.0.2.8' },
    },
    'combined',
  ],
  [
    'nginx, with the status in quotes',
    '192.0.2.7 - - [01/Mar/2026:00:00:00 +0000] "GET /a HTTP/1.1" "404" 123 "http://r/" "curl/8.5.0"',
    { status: 404, headers: { referer: 'http://r/', 'user-agent': 'curl/8.5.0' } },
    'combined',
  ],
  [
    'nginx, with the host before the status: the fields after that may be any',
    '192.0.2.7 - - [01/Mar/2026:00:00:00 +0000] "GET /a HTTP/1.1" "app.example.com" 404 123 "http://r/" "curl/8.5.0"',
    { target: '/a', status: undefined, headers: {} },
    'common',
  ],
  [
    'Traefik, common',
    '192.0.2.7 - - [01/Mar/2026:00:00:00 +0000] "GET /api HTTP/1.1" 200 2 "-" "curl/8.5.0" 42 "app@docker" "http://172.18.0.3:80" 12ms',
    { durationMs: 12, target: '/api', headers: { 'user-agent': 'curl/8.5.0' } },
    'traefik',
  ],
  [
    'Traefik, JSON',
    '{"ClientAddr":"192.0.2.7:51234","ClientHost":"192.0.2.7","ClientPort":"51234","ClientUsername":"-","DownstreamContentSize":2,"DownstreamStatus":200,"Duration":12000000,"RequestCount":42,"RequestHost":"app.example.com","RequestMethod":"GET","RequestPath":"/api?x=1","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RouterName":"app@docker","StartLocal":"2026-03-01T01:00:00.5+01:00","StartUTC":"2026-03-01T00:00:00.5Z","entryPointName":"web","level":"info","msg":"","request_X-Api-Key":"k","time":"2026-03-01T00:00:00Z"}',
    {
      timeMs: Date.UTC(2026, 2, 1) + 500,
      durationMs: 12,
      ip: '192.0.2.7',
      host: 'app.example.com',
      target: '/api?x=1',
      headers: { 'x-api-key': 'k' },
    },
    'traefik-json',
  ],
  [
    'Traefik behind a trusted proxy, which appends an address to what the client has sent',
    '198.51.100.9, 203.0.113.7 - - [01/Mar/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-" 1 "r@docker" "http://10.0.0.2:80" 3ms',
    { ip: '203.0.113.7', host: undefined, durationMs: 3, headers: { 'x-forwarded-for': '198.51.100.9' } },
    'traefik',
  ],
  [
    'Traefik behind several trusted proxies',
    'unknown, 198.51.100.9,203.0.113.7, 10.0.0.4 - - [01/Mar/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-" 1 "-" "-" 3ms',
    { ip: '10.0.0.4', host: undefined, headers: { 'x-forwarded-for': 'unknown,198.51.100.9,203.0.113.7' } },
    'traefik',
  ],
  [
    'Traefik behind a trusted proxy, JSON',
    '{"ClientAddr":"10.0.0.1:51234","ClientHost":"198.51.100.9, 203.0.113.7","RequestMethod":"GET","RequestPath":"/","StartUTC":"2026-03-01T00:00:00Z"}',
    { ip: '203.0.113.7', headers: { 'x-forwarded-for': '198.51.100.9' } },
    'traefik-json',
  ],
  [
    'Caddy',
    '{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Cookie":["REDACTED"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"user_id":"","duration":0.5,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}',
    {
      timeMs: Math.round(1646861401.5241024 * 1e6) / 1e3 - 500,
      durationMs: 500,
      ip: '192.0.2.7',
      host: 'localhost',
      target: '/a?b',
      status: 200,
      headers: { 'user-agent': 'curl/7.82.0', accept: '*/*' },
    },
    'caddy',
  ],
  [
    'nginx, JSON with the names of its variables',
    '{"time_iso8601":"2026-03-01T00:00:01+00:00","remote_addr":"192.0.2.7","request":"GET /a HTTP/1.1","status":"200","request_time":"0.250","host":"app.example.com","http_x_api_key":"k","http_user_agent":""}',
    {
      timeMs: Date.UTC(2026, 2, 1) + 750,
      durationMs: 250,
      status: 200,
      host: 'app.example.com',
      headers: { 'x-api-key': 'k' },
    },
    'nginx-json',
  ],
  [
    'this gateway',
    '{"level":"info","time":"2026-03-01T00:00:01.000Z","pid":1,"name":"gateway","requestId":"a","method":"POST","path":"/login","status":429,"durationMs":0.5,"refusedBy":"login","client":"192.0.2.7","msg":"request"}',
    { timeMs: Date.UTC(2026, 2, 1) + 999.5, durationMs: 0.5, ip: '192.0.2.7', target: '/login', status: 429 },
    'sluice',
  ],
])('replay reads a line of %s', (_, line, expected, format) => {
  expect(read(line)).toMatchObject({ ...expected, knows: { format } })
  const named = lineReader(format)
  expect(named(line)).toEqual(read(line))
})

// The host, a time, and the frontend, as nginx and HAProxy are often set to log them.
test.each(['app.example.com', '0.005', 'https-in~', 'a, b'])(
  'replay does not take %j after the user agent for X-Forwarded-For',
  (third) => {
    const text = `10.0.0.1 - - [01/Mar/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl" "${third}"`
    const { headers, knows } = read(text) as LoggedRequest
    expect(headers).toEqual({ 'user-agent': 'curl' })
    expect(knows.headers).toEqual(new Set(['referer', 'user-agent']))
  },
)

test.each(['192.0.2.7', '192.0.2.7:4711', '2001:db8::7', 'unknown, 192.0.2.7'])(
  'replay takes %j after the user agent for X-Forwarded-For',
  (third) => {
    const text = `10.0.0.1 - - [01/Mar/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl" "${third}"`
    expect(read(text)).toMatchObject({ headers: { 'x-forwarded-for': third } })
  },
)

test.each([
  ['hello', 'in no known format'],
  ['{"a":1', 'not JSON'],
  ['{"a":1}', 'in no known format'],
  ['1.2.3.4 - - [10/Okt/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1', 'the time cannot be read'],
  ['1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "\\x16\\x03\\x01" 400 1', 'it has no request'],
  ['1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] "-" 408 0', 'it has no request'],
  [
    '2026-02-06T12:14:14+00:00 10.0.0.5 nginx: 192.0.2.1 - - [06/Feb/2026:12:14:14 +0000] "GET / HTTP/1.1" 200 5 "-" "-"',
    'the text before an address is not a host',
  ],
  [
    '[pod/web-0/nginx] 192.0.2.1 - - [06/Feb/2026:12:14:14 +0000] "GET / HTTP/1.1" 200 5 "-" "-"',
    'the text before an address is not a host',
  ],
  ['host.example.com - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1', 'it has no client address'],
  [
    '{"msg":"request","requestId":"a","time":"2026-03-01T00:00:01.000Z","method":"GET","path":"/"}',
    expect.stringContaining('LOG_ADDRESSES'),
  ],
])('replay says why %s cannot be read', (line, why: unknown) => {
  expect(read(line)).toEqual({ why })
})

// From Caddy, which could not reach a backend and logs to one file. The line of the request itself follows.
test("replay does not count a request twice for Caddy's line about its error", () => {
  const ofLogger = (logger: string): string =>
    `{"level":"error","ts":1796072162.97,"logger":"${logger}","msg":"dial tcp 127.0.0.1:1: connect: connection refused",` +
    '"request":{"remote_ip":"192.0.2.7","proto":"HTTP/1.1","method":"GET","host":"app","uri":"/a","headers":{}},"duration":0.0007,"status":502}'
  for (const logger of ['http.log.error', 'http.log.error.log0', 'http.handlers.reverse_proxy'])
    expect(read(ofLogger(logger)), logger).toBe('other')
  expect(read(ofLogger('http.log.access.log0'))).toMatchObject({ ip: '192.0.2.7', status: 502 })
})

test("replay skips Caddy's lines about itself, which are in the same log", () => {
  const lines = [
    '{"level":"info","ts":1796072162.97,"msg":"using adjacent Caddyfile"}',
    '{"level":"warn","ts":1796072162.97,"logger":"admin","msg":"admin endpoint disabled"}',
    '{"level":"info","ts":"2026/11/30 21:50:47.123","logger":"tls.cache","msg":"started background maintenance"}',
  ]
  for (const text of lines)
    for (const reader of [read, lineReader('caddy')]) expect(reader(text), text).toBe('other')
})

test('replay skips the other lines of this gateway', () => {
  expect(read('{"level":"info","time":"2026-03-01T00:00:01.000Z","name":"gateway","msg":"listening"}')).toBe(
    'other',
  )
})
