import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { send, startGateway, type Reply } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { converse } from '../support/http/raw-client.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const table = `
denyList:
  - ip: 203.0.113.66
cors: { origins: ['https://app.example'] }
limits:
  - { name: login, match: POST /login, requests: 2, window: 15m }
  - { name: options, match: OPTIONS /options, requests: 1, window: 15m }
  - { name: by-host, match: GET /site, hosts: [a.example], requests: 1, window: 15m }
  - { name: by-key, match: GET /keyed, key: [ip, 'header:x-api-key', 'query:user'], requests: 1, window: 15m }
  - { name: every, match: '* /every', requests: 1, window: 15m }
  - { name: by-body, match: POST /session, key: 'body:email', requests: 2, window: 15m }
`
const body = '{"code":429,"error":"Too many requests, Please try after a while!"}'

let backend: RecordingBackend
let gateway: HostedGateway
let clients = 0
const freshClient = (): string => `198.51.${Math.floor(++clients / 250)}.${(clients % 250) + 1}`

beforeAll(async () => {
  backend = await startRecordingBackend()
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(table),
    DECISIONS_PORT: '0',
    TRUSTED_PROXIES: '127.0.0.1,127.0.0.9',
    ACCESS_LOG: '1',
  })
})

afterAll(() => backend.close())

type Asked = { readonly client?: string; readonly host?: string; readonly headers?: Record<string, string> }

/** How each proxy asks about a request. */
const forms = {
  'forward-auth': (
    method: string,
    uri: string,
    { client = '', host = 'a', headers = {} }: Asked,
    port: number,
  ) =>
    send(port, 'GET', '/forward-auth', {
      headers: {
        ...headers,
        'X-Forwarded-Method': method,
        'X-Forwarded-Uri': uri,
        'X-Forwarded-Host': host,
        'X-Forwarded-Proto': 'https',
        'X-Forwarded-For': client,
      },
    }),
  'auth-request': (
    method: string,
    uri: string,
    { client = '', host = 'a', headers = {} }: Asked,
    port: number,
  ) =>
    send(port, 'GET', '/auth-request', {
      headers: {
        ...headers,
        Host: host,
        'X-Original-Method': method,
        'X-Original-URI': uri,
        'X-Forwarded-For': client,
      },
    }),
  'ext-authz': (
    method: string,
    uri: string,
    { client = '', host = 'a', headers = {} }: Asked,
    port: number,
  ) =>
    send(port, method, `/ext-authz${uri}`, {
      headers: { ...headers, Host: host, 'X-Forwarded-For': client, 'Content-Length': '0' },
    }),
} as const

type Form = keyof typeof forms
const names = Object.keys(forms) as Form[]

/** The status of the original request's response. */
function statusOf({ status, headers }: Reply): number {
  const said = headers['x-sluice-status']
  return said === undefined ? status : Number(said)
}

function ask(form: Form, method: string, uri: string, asked: Asked = {}): Promise<Reply> {
  return forms[form](method, uri, asked, gateway.decisionsPort)
}

describe.each(names)('%s', (form) => {
  test('decides by the same counters as the requests that are forwarded, and says the same of the limits', async () => {
    const client = freshClient()
    const first = await ask(form, 'POST', '/login', { client })
    expect(first.status).toBe(200)
    expect(first.body).toBe('')
    expect(first.headers).toMatchObject({
      'ratelimit-policy': '"login";q=2;w=900',
      ratelimit: expect.stringMatching(/^"login";r=1;t=\d+$/) as string,
      'x-request-id': expect.any(String) as string,
    })
    const headers = { 'X-Forwarded-For': client }
    expect((await gateway.send('POST', '/login', { headers })).status).toBe(200)
    const forwarded = await gateway.send('POST', '/login', { headers })
    const refused = await ask(form, 'POST', '/login', { client })
    expect(statusOf(refused)).toBe(429)
    expect(refused.headers['cache-control']).toBe('no-store')
    for (const name of ['retry-after', 'ratelimit-policy'])
      expect(refused.headers[name]).toBe(forwarded.headers[name])
    if (form === 'auth-request') expect([refused.status, refused.body]).toEqual([403, ''])
    else
      expect([refused.status, refused.body, refused.headers['x-sluice-status']]).toEqual([
        429,
        body,
        undefined,
      ])
    // A request that no rule counts passes without any limit headers.
    const free = await ask(form, 'GET', '/login', { client })
    expect([free.status, free.headers['ratelimit']]).toEqual([200, undefined])
  })

  test('limits count by host, headers and query of the original request', async () => {
    const client = freshClient()
    const statuses = []
    for (const host of ['a.example', 'A.Example:8443', 'b.example'])
      statuses.push(statusOf(await ask(form, 'GET', '/site', { client, host })))
    expect(statuses).toEqual([200, 429, 200])
    const keyed = async (key: string, user: string): Promise<number> =>
      statusOf(await ask(form, 'GET', `/keyed?user=${user}`, { client, headers: { 'x-api-key': key } }))
    expect([
      await keyed('k', 'u'),
      await keyed('k', 'u'),
      await keyed('l', 'u'),
      await keyed('k', 'v'),
    ]).toEqual([200, 429, 200, 200])
  })

  test('a rule by the body counts by address for an auth request, and by account when the request is forwarded', async () => {
    const client = freshClient()
    const headers = { 'X-Forwarded-For': client, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ email: `${client}@x` })
    const forwarded = async (): Promise<number> =>
      (await gateway.send('POST', '/session', { headers, body })).status
    const asked = async (): Promise<number> => statusOf(await ask(form, 'POST', '/session', { client }))
    expect([await asked(), await asked(), await asked()]).toEqual([200, 200, 429])
    expect([await forwarded(), await forwarded(), await forwarded()]).toEqual([200, 200, 429])
  })

  test('knows bans and limits that an operator has set', async () => {
    const client = freshClient()
    const tell = async (path: string, question: object): Promise<number> =>
      (await askOperator(gateway, 'POST', path, { client: { ip: client }, ...question })).status
    expect(await tell('/api/clients/override', { policy: 'login', requests: 4, for: '1h' })).toBe(200)
    const logins = async (): Promise<number> => statusOf(await ask(form, 'POST', '/login', { client }))
    expect([await logins(), await logins(), await logins()]).toEqual([200, 200, 200])
    expect(await tell('/api/clients/ban', { for: '1h' })).toBe(200)
    expect(statusOf(await ask(form, 'GET', '/', { client }))).toBe(429)
    expect(await tell('/api/clients/unban', {})).toBe(200)
    expect([await logins(), await logins()]).toEqual([200, 429])
  })

  test('a client in denyList is refused although no rule applies', async () => {
    const refused = await ask(form, 'GET', '/', { client: '203.0.113.66' })
    expect([refused.status, statusOf(refused)]).toEqual([403, 403])
  })

  test('decides about an OPTIONS that it would answer itself if it forwarded requests', async () => {
    const headers = { 'Max-Forwards': '0' }
    const denied = await ask(form, 'OPTIONS', '/options', { client: '203.0.113.66', headers })
    expect([denied.status, statusOf(denied)]).toEqual([403, 403])
    const client = freshClient()
    const asked = async (): Promise<number> =>
      statusOf(await ask(form, 'OPTIONS', '/options', { client, headers }))
    expect([await asked(), await asked()]).toEqual([200, 429])
    const ban = { client: { ip: client }, for: '1h' }
    expect((await askOperator(gateway, 'POST', '/api/clients/ban', ban)).status).toBe(200)
    const another = await ask(form, 'OPTIONS', '/elsewhere', { client, headers })
    expect(statusOf(another)).toBe(429)
  })

  test.each([
    '//login',
    '/./login',
    '/a/../login',
    '/%2e%2e/login',
    '/%6cogin',
    '/LOGIN',
    '/login/',
    '/login;x',
    '/login?',
    '/login%2f',
    '/x%2f..%2flogin',
    '/..;/login',
    '/login%00',
    '/%5clogin',
    '/a%5c..%5Clogin',
    '/a//../login',
    '/%256cogin',
    '/login&x',
    '/login.zzz',
    '/login%',
    '/http://a/login',
  ])('%j is no way around the limit', async (uri) => {
    const client = freshClient()
    await ask(form, 'POST', '/login', { client })
    await ask(form, 'POST', '/login', { client })
    expect([400, 429]).toContain(statusOf(await ask(form, 'POST', uri, { client })))
  })

  test('another method in a header, a gRPC call or a WebSocket handshake is no way around it either', async () => {
    const client = freshClient()
    await ask(form, 'POST', '/login', { client })
    await ask(form, 'POST', '/login', { client })
    const others: [method: string, headers: Record<string, string>][] = [
      ['GET', { 'X-HTTP-Method-Override': 'POST' }],
      ['POST', { 'Content-Type': 'application/grpc', TE: 'trailers' }],
      ['POST', { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' }],
      ['POST', { 'X-Request-Id': 'x', Forwarded: 'for=9.9.9.9', 'X-Real-IP': '9.9.9.9' }],
    ]
    for (const [method, headers] of others)
      expect((await ask(form, method, '/login', { client, headers })).status).toBeGreaterThanOrEqual(400)
  })

  test('only trusted proxies may ask', async () => {
    const path = form === 'ext-authz' ? '/ext-authz/login' : `/${form}`
    const reply = await send(gateway.decisionsPort, 'GET', path, { from: '127.0.0.2' })
    expect([reply.status, statusOf(reply)]).toEqual([403, 403])
    await gateway.waitForLine(
      /"reason":"the peer that asks is not in TRUSTED_PROXIES".*auth requests rejected/,
    )
  })

  test('an auth request without the address of a client is refused', async () => {
    for (const client of ['', 'unknown', '300.1.1.1'])
      expect(statusOf(await ask(form, 'GET', '/', { client }))).toBe(400)
  })
})

describe('a malformed auth request', () => {
  const forwarded = ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /', 'X-Forwarded-Host: a']
  const original = ['X-Original-Method: GET', 'X-Original-URI: /']
  const without = (lines: readonly string[], name: string): string[] =>
    lines.filter((line) => !line.startsWith(`${name}:`))
  const get = (path: string, lines: readonly string[]): string =>
    [`GET ${path} HTTP/1.1`, 'Host: a', 'X-Forwarded-For: 192.0.2.1', ...lines, '', ''].join('\r\n')
  const forward = (lines: readonly string[]): string => get('/forward-auth', lines)
  const auth = (lines: readonly string[]): string => get('/auth-request', lines)
  const rows: [name: string, bytes: string, status: number][] = [
    [
      'HTTP/1.0 without Host, as nginx sends it where its client named none',
      auth(original).replace('HTTP/1.1\r\nHost: a', 'HTTP/1.0'),
      200,
    ],
    ['HTTP/1.1 without Host', auth(original).replace('\r\nHost: a', ''), 403],
    ['as it should be', forward(forwarded), 200],
    ['no method', forward(without(forwarded, 'X-Forwarded-Method')), 400],
    ['no target', forward(without(forwarded, 'X-Forwarded-Uri')), 400],
    ['no host', forward(without(forwarded, 'X-Forwarded-Host')), 400],
    ['two methods', forward([...forwarded, 'X-Forwarded-Method: GET']), 400],
    ['two targets', forward([...forwarded, 'x-forwarded-uri: /other']), 400],
    ['two hosts', forward([...forwarded, 'X-Forwarded-Host: a']), 400],
    ['a list of hosts', forward([...without(forwarded, 'X-Forwarded-Host'), 'X-Forwarded-Host: a, b']), 400],
    [
      'an unknown method',
      forward([...without(forwarded, 'X-Forwarded-Method'), 'X-Forwarded-Method: get']),
      400,
    ],
    [
      'an absolute target',
      forward([...without(forwarded, 'X-Forwarded-Uri'), 'X-Forwarded-Uri: http://b/']),
      400,
    ],
    [
      'a target without a slash',
      forward([...without(forwarded, 'X-Forwarded-Uri'), 'X-Forwarded-Uri: x']),
      400,
    ],
    ['a key in two lines', forward([...forwarded, 'X-Api-Key: k', 'x-api-key: l']), 400],
    ['a key in a header that CGI takes for it', forward([...forwarded, 'X_Api_Key: k']), 400],
    ['the same beside the key', forward([...forwarded, 'X-Api-Key: k', 'X-Api_Key: l']), 400],
    ['a method in such a header', forward([...forwarded, 'X_HTTP_Method.Override: POST']), 400],
    [
      'other headers, in any spelling and in several lines',
      forward([...forwarded, 'X-Api-Key: k', 'X_Other: 1', 'X_Other: 2', 'Accept: a', 'Accept: b']),
      200,
    ],
    ['headers of nginx for Traefik', forward(original), 400],
    ['nginx, as it should be', auth(original), 200],
    ['nginx, no method', auth(without(original, 'X-Original-Method')), 403],
    ['nginx, no target', auth(without(original, 'X-Original-URI')), 403],
    ['nginx, two targets', auth([...original, 'X-Original-URI: /']), 403],
    ['nginx, a key in a header that CGI takes for it', auth([...original, 'X_Api_Key: k']), 403],
    ['nginx, two hosts', auth([...original, 'Host: b']), 403],
    ['another path', get('/other', forwarded), 404],
    ['another path that begins the same', get('/forward-auth/x', forwarded), 404],
    ['Envoy, no path after the prefix', get('/ext-authz', []), 404],
    ['TRACE', forward([...without(forwarded, 'X-Forwarded-Method'), 'X-Forwarded-Method: TRACE']), 405],
    ['an ignored body', forward([...forwarded, 'Content-Length: 2']) + 'hi', 200],
    [
      'CORS preflights and OPTIONS *',
      forward(['X-Forwarded-Method: OPTIONS', 'X-Forwarded-Uri: *', 'X-Forwarded-Host: a']),
      200,
    ],
  ]
  test.each(rows)('%s', async (_, bytes, status) => {
    const { responses } = await converse(gateway.decisionsPort, [bytes], { from: '127.0.0.1', responses: 1 })
    expect(responses[0]?.status).toBe(status)
  })

  test('many auth requests are answered on one connection, and none is forwarded', async () => {
    const seen = backend.requests.length
    const socket = connect(gateway.decisionsPort, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => (text += piece))
    for (let sent = 0; sent < 40; sent++) socket.write(forward(forwarded))
    await eventually('all forty are decided', () => expect(text.match(/HTTP\/1\.1 200/g)?.length).toBe(40))
    socket.destroy()
    expect(backend.requests.length).toBe(seen)
  })

  test('20 KB of headers, which nginx takes, are not an error', async () => {
    const headers = { 'x-long': 'x'.repeat(20_000) }
    expect((await ask('auth-request', 'GET', '/', { client: freshClient(), headers })).status).toBe(200)
  })
})

test('a preflight counts under rules for every method, as its body is unknown', async () => {
  const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' }
  const about = { client: freshClient(), headers }
  expect((await ask('forward-auth', 'OPTIONS', '/every', about)).status).toBe(200)
  expect((await ask('forward-auth', 'OPTIONS', '/every', about)).status).toBe(429)
})

test('metrics and the access log have the original request, and the status that it gets', async () => {
  const client = freshClient()
  for (let i = 0; i < 3; i++) await ask('auth-request', 'POST', '/login?x=1', { client })
  await gateway.waitForLine(new RegExp(`"status":429.*"${client}".*"msg":"request"`))
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes(`"${client}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(
    lines.filter(({ msg }) => msg === 'request').map(({ method, path, status }) => [method, path, status]),
  ).toEqual([
    ['POST', '/login', 200],
    ['POST', '/login', 200],
    ['POST', '/login', 429],
  ])
  expect(lines.at(-1)).toMatchObject({ msg: 'request', refusedBy: 'login' })
  const metrics = (await send(gateway.adminPort, 'GET', '/metrics')).body
  expect(metrics).toMatch(/sluice_decisions_total\{policy="login",outcome="refused"\} [1-9]/)
})

test('the log of refused requests has the original request, and the status that it gets', async () => {
  const { decisionsPort, waitForLine } = await startHosted({
    CONFIG_FILE: writeConfigFile(table),
    DECISIONS_PORT: '0',
    TRUSTED_PROXIES: '127.0.0.1',
    ACCESS_LOG: 'refused',
  })
  const headers = {
    'x-original-method': 'POST',
    'x-original-uri': '/login?x=1',
    'x-forwarded-for': freshClient(),
  }
  for (let i = 0; i < 3; i++) await send(decisionsPort, 'GET', '/auth-request', { headers })
  const [line] = await waitForLine(/^.*"msg":"request refused".*$/)
  expect(JSON.parse(line)).toMatchObject({ status: 429, policy: 'login', path: '/login', method: 'POST' })
})

test('a changed table takes effect there too', async () => {
  const CONFIG_FILE = writeConfigFile(table)
  const own = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE,
    DECISIONS_PORT: '0',
    TRUSTED_PROXIES: '127.0.0.1',
  })
  writeFileSync(CONFIG_FILE, table.replace('POST /login', 'POST /other'))
  const isLimited = async (): Promise<boolean> => {
    const reply = await forms['ext-authz']('POST', '/other', { client: freshClient() }, own.decisionsPort)
    return reply.headers['ratelimit'] !== undefined
  }
  await eventually('the replica that has heard of it is limited', isLimited)
})

describe('three replicas', () => {
  test('decide and forward by one counter in Redis', async () => {
    const env = {
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(table),
      DECISIONS_PORT: '0',
      TRUSTED_PROXIES: '127.0.0.1',
      REDIS_URL: await freshRedis(),
    }
    const replicas = [await startHosted(env), await startHosted(env), await startHosted(env)]
    const client = freshClient()
    const statuses: number[] = []
    for (const [index, { decisionsPort }] of replicas.entries()) {
      const form = names[index] ?? 'forward-auth'
      statuses.push(statusOf(await forms[form]('POST', '/login', { client }, decisionsPort)))
    }
    expect(statuses).toEqual([200, 200, 429])
  })
})

test('workers share the decisions port and one counter, and release the port on exit', async () => {
  const file = writeConfigFile(table)
  const own = await startGateway({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: file,
    DECISIONS_PORT: '0',
    TRUSTED_PROXIES: '127.0.0.1',
    WORKERS: '2',
  })
  const client = freshClient()
  const statuses = []
  for (let i = 0; i < 3; i++)
    statuses.push(statusOf(await forms['ext-authz']('POST', '/login', { client }, own.decisionsPort)))
  expect(statuses).toEqual([200, 200, 429])
  expect(await own.process.stop()).toBe(0)
  await expect(send(own.decisionsPort, 'GET', '/forward-auth')).rejects.toThrow()
})
