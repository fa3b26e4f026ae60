import { hash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { explainRequest } from '../../../proxy/cli/explain/verb.ts'
import type { Explanation } from '../../../proxy/limits/explain/explain.ts'
import { writeHead } from '../../../proxy/limits/explain/request-text.ts'
import type { UnreadKey } from '../../../proxy/telemetry/telemetry.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'

// sha256 of `secret`
const sha256 = 'sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'

const { settings } = loadWithFile(`
trustedProxies: [10.0.0.0/8]
allowList: [{ ip: 192.0.2.99 }]
denyList: [{ ip: 203.0.113.0/24 }]
limits:
  - { name: login, match: POST /login, requests: 5, window: 15m }
  - { name: api, match: '* /api/*', except: GET /api/health, key: 'header:x-api-key', requests: 100, window: 1m }
  - { name: app, match: GET /app, hosts: [app.example.com], requests: 10, window: 1s }
  - name: both
    match: GET /both
    key: [ip, 'header:x-api-key', 'cookie:sid', host]
    requests: 1
    window: 1s
    mode: shadow
    allowList: [{ ip: 192.0.2.98 }]
    overrides: [{ clients: [{ ip: 192.0.2.97 }], requests: 1000 }]
`)

function explain(request: string, ip = '192.0.2.1', ...headers: string[]): Promise<Explanation> {
  const lines = headers.some((line) => line.startsWith('Host:')) ? headers : ['Host: a', ...headers]
  return explainRequest(settings, `${request} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, ip)
}

const ruleOf = ({ rules }: Explanation, name: string) => rules.find((rule) => rule.name === name)

test('explain prints the canonical path, how backends may read it, and the client that counts', async () => {
  const explained = await explain('POST /x/../LOGIN;a=b/?token=secret', '2001:db8::7')
  expect(explained).toMatchObject({
    outcome: 'limited',
    path: '/LOGIN;a=b/',
    host: 'a',
    client: { address: '2001:db8::7', counts: '2001:db8::/64', why: 'the peer is not a trusted proxy' },
  })
  expect(explained.readings).toContain('/login')
  expect(ruleOf(explained, 'login')).toMatchObject({
    counts: true,
    keys: ['2001:db8::/64'],
    key: [{ part: 'ip', values: ['2001:db8::/64'] }],
    requests: 5,
    windowSeconds: 900,
  })
  // The query may contain secrets.
  expect(JSON.stringify(explained)).not.toContain('secret')
})

test.each([
  [
    '10.0.0.1',
    ['X-Forwarded-For: 192.0.2.1'],
    '192.0.2.1',
    'a trusted proxy names the client in x-forwarded-for',
  ],
  ['10.0.0.1', [], '10.0.0.1', 'a trusted proxy names no client in x-forwarded-for'],
  [
    '10.0.0.1',
    ['X-Forwarded-For: unknown'],
    '10.0.0.1',
    'a trusted proxy names no client in x-forwarded-for',
  ],
  [
    '192.0.2.5',
    ['X-Forwarded-For: 192.0.2.1'],
    '192.0.2.5',
    'the peer is not a trusted proxy, and its x-forwarded-for is ignored',
  ],
])('from %s with %j the client is %s', async (ip, headers, address, why) => {
  const { client } = await explain('GET /', ip, ...headers)
  expect(client).toMatchObject({ address, why, peer: ip })
})

test.each([
  ['GET /login', [], 'login', true, 'the method GET is not POST'],
  ['POST /logn', [], 'login', true, 'the path is not /login'],
  ['POST /other', [], 'login', false, 'the path is not /login'],
  ['GET /other', [], 'login', false, 'the method GET is not POST; the path is not /login'],
  ['GET /app', ['Host: example.com'], 'app', true, 'the host is not app.example.com'],
  ['GET /api/health', ['x-api-key: a'], 'api', true, 'except matches GET /api/health'],
  ['GET /api/a', [], 'api', true, 'the request has no header:x-api-key'],
  ['GET /both', ['x-api-key: a'], 'both', true, 'the request has no cookie:sid'],
])('%s %j does not count under %s', async (request, headers, name, near, why) => {
  expect(ruleOf(await explain(request, '192.0.2.1', ...headers), name)).toMatchObject({
    counts: false,
    near,
    why,
    keys: [],
  })
})

test('lists keep rules from their clients', async () => {
  const send = (ip: string) => explain('GET /both', ip, 'x-api-key: a', 'cookie: sid=1')
  expect(ruleOf(await send('192.0.2.99'), 'both')).toMatchObject({
    counts: false,
    why: 'allowList contains the client',
  })
  expect(ruleOf(await send('192.0.2.98'), 'both')).toMatchObject({
    counts: false,
    why: "the rule's allowList contains the client",
  })
  expect(ruleOf(await send('192.0.2.97'), 'both')).toMatchObject({
    counts: true,
    requests: 1000,
    why: 'override 1 applies to the client',
  })
  expect(await send('203.0.113.1')).toMatchObject({ outcome: 'denied', status: 403, rules: [] })
})

test('explain prints secret values only as hashes, in the format of lists', async () => {
  const explained = await explain(
    'GET /both',
    '192.0.2.1',
    'X-Api-Key: secret',
    'Cookie: sid=secret',
    'Host: A.b:80',
  )
  expect(ruleOf(explained, 'both')).toMatchObject({
    counts: true,
    mode: 'shadow',
    keys: [expect.stringMatching(/^h:[\w-]{22}$/) as string],
    key: [
      { part: 'ip', values: ['192.0.2.1'] },
      { part: 'header:x-api-key', values: [sha256] },
      { part: 'cookie:sid', values: [sha256] },
      { part: 'host', values: ['a.b'] },
    ],
  })
  expect(JSON.stringify(explained)).not.toContain('secret')
})

test.each([
  ['GET /a%0ab', 400, 'the path has a control character'],
  ['GET /a b', 400, 'invalid HTTP version'],
  ['TRACE /', 405, 'TRACE is not supported'],
  ['CONNECT a:443', 405, 'CONNECT is not supported'],
])('%s is rejected with %i', async (request, status, why) => {
  expect(await explain(request)).toMatchObject({ outcome: 'rejected', status, why, rules: [] })
})

describe('rules that count by the body', () => {
  const accounts = loadWithFile(`
limits:
  - { name: account, match: POST /login, key: 'body:email', requests: 5, window: 15m }
  - { name: first, match: POST /login, key: { first: ['body:user.email', 'body:email'] }, requests: 5, window: 15m }
`).settings

  async function explainBody(body: string | undefined, ...headers: string[]): Promise<Explanation> {
    const lines = headers.map((line) => line.split(': ', 2) as [string, string])
    const head = writeHead({ method: 'POST', target: '/login', headers: lines, body }, 'a')
    return explainRequest(accounts, head, '192.0.2.1', body)
  }

  const hashed = (text: string): string => `sha256:${hash('sha256', text)}`

  test.each([
    ['JSON', '{"email":"A@x"}'],
    ['a form', 'email=a%40x'],
  ])('tell the account in %s', async (_, body) => {
    const account = ruleOf(await explainBody(body), 'account')
    expect(account).toMatchObject({ counts: true, key: [{ part: 'body:email', values: [hashed('a@x')] }] })
    expect(account?.keys).toHaveLength(1)
    expect(account?.keys).not.toContain('192.0.2.1')
    expect(account).not.toHaveProperty('unread')
  })

  test('explain tells which part of first the request has', async () => {
    const { key } = ruleOf(await explainBody('{"email":"a@x"}'), 'first') ?? {}
    expect(key).toEqual([{ part: 'body:email', values: [hashed('a@x')] }])
  })

  test.each<[string, string | undefined, UnreadKey, string[]]>([
    ['no body', undefined, 'missing', []],
    ['an empty body', '', 'missing', []],
    ['a body without it', '{"x":1}', 'missing', []],
    ['another type', '{"email":"a@x"}', 'type', ['Content-Type: text/plain']],
    ['broken JSON', '{"email":"a@x",}', 'syntax', []],
    ['64 KiB', JSON.stringify({ email: 'a@x', x: 'x'.repeat(70_000) }), 'size', []],
  ])('tell why %s counts by address', async (_, body, unread, headers) => {
    const account = ruleOf(await explainBody(body, ...headers), 'account')
    expect(account).toMatchObject({ counts: true, unread })
    expect(account?.why).toContain('by address')
    expect(account?.keys).toContain('192.0.2.1')
  })

  test('explanations say which overrides apply to the clients of a batch', async () => {
    const rule = `{ name: account, match: POST /login, key: 'body:email', requests: 5, window: 15m, overrides: [
      { clients: [{ 'body:email': a@x }], requests: 20 }, { clients: [{ 'body:email': b@x }, { 'body:email': c@x }], requests: 30 }] }`
    const table = loadWithFile(`limits: [${rule}]`).settings
    const ask = async (...emails: string[]) => {
      const body = JSON.stringify(emails.map((email) => ({ email })))
      const head = 'POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\r\n'
      return ruleOf(await explainRequest(table, head, '192.0.2.1', body), 'account')
    }
    expect(await ask('a@x', 'b@x', 'c@x', 'd@x')).toMatchObject({
      requests: 5,
      why: 'override 1 (20 requests) applies to 1 of its 4 clients; override 2 (30 requests) applies to 2 of its 4 clients',
    })
    expect(await ask('b@x', 'c@x')).toMatchObject({ requests: 30, why: 'override 2 applies to the client' })
    expect(await ask('d@x', 'e@x')).not.toHaveProperty('why')
  })

  test('an account that can be read in too many ways is rejected', async () => {
    const email = Array.from({ length: 9 }, (_, i) => `u${i}`)
    expect(await explainBody(JSON.stringify({ email: { $in: email } }))).toMatchObject({ outcome: 'limited' })
    const body = `{${email.map((one) => `"email":"${one}"`).join()}}`
    expect(await explainBody(body)).toMatchObject({ outcome: 'rejected', status: 400 })
  })
})
