import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { directoryWith } from '../support/gateway/settings.ts'

const token = 'of-the-operators'
const authorized = { authorization: `Bearer ${token}` }
const table = `
cors: { origins: ['https://app.example.com'] }
allowList: [{ ip: 127.0.0.98 }]
denyList: [{ ip: 127.0.0.97 }]
limits:
  - { name: planned, match: GET /planned, requests: 2, window: 1h, plans: { pro: 5 }, plan: store }
  - { name: login, match: POST /login, requests: 2, window: 15m, countStatus: [4xx, 200], ban: { after: 50, for: 1h, scope: all } }
  - name: api
    match: ['GET,POST /api/*']
    except: GET /api/free
    hosts: [app.example.com, '*.example.com']
    key: [header:x-api-key, { first: [cookie:sid, ip] }]
    requests: 5
    window: 15m
    algorithm: sliding
    allowList: [{ header: { x-probe: 'sha256:${'0'.repeat(64)}' } }]
    overrides: [{ clients: [{ ip: 127.0.0.96 }], requests: 50, label: Acme }]
  - { name: bucket, match: GET /bucket, requests: 60, window: 15m, algorithm: token-bucket, burst: 2, mode: shadow }
  - { name: export, match: GET /export, concurrency: 2 }
  - { name: units, match: POST /units, key: global, requests: 100, window: 1m, cost: { reserve: 'json:max', settle: 'header:x-cost' } }
  - { name: tokens, match: POST /tokens, requests: 100, window: 1m, cost: { reserve: 20, settle: 'json:usage.total' } }
  - { name: account, match: POST /account, key: 'query:user', requests: 5, window: 15m, device: { status: [2xx, 303] } }
  - { name: mail, match: POST /mail, key: 'body:email', requests: 5, window: day }
  - { name: monthly, match: GET /monthly, requests: 5, window: month, timezone: Europe/Berlin }
  - { name: bots, match: GET /bots, requests: 5, window: 1m, when: { userAgent: { contains: bot } }, unless: { header: { x-probe: present } } }
  - { name: slow, match: GET /slow, requests: 5, window: 1m, algorithm: token-bucket, over: { delay: 1s } }
  - { name: leased, match: GET /leased, requests: 5000, window: 1m, lease: auto }
`

type Schema = object
type Response = { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
type Operation = {
  readonly security: readonly object[]
  readonly responses: Readonly<Record<string, Response>>
}
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: object
}

// Ajv for JSON Schema 2020-12, in the version that the validator of documents depends on.
const bring = createRequire(import.meta.resolve('@seriousme/openapi-schema-validator'))
type Check = { (data: unknown): boolean; readonly errors?: readonly object[] | null }
type Ajv = {
  compile(schema: object): Check
  errorsText(errors: Check['errors']): string
}
const { Ajv2020 } = bring('ajv/dist/2020.js') as { Ajv2020: new (options: object) => Ajv }

let gateway: HostedGateway
let document: Document
let settingsFile: string

beforeAll(async () => {
  const backend = await startBackend()
  settingsFile = join(directoryWith(table), 'sluice.yaml')
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: settingsFile,
    ADMIN_TOKEN: token,
    DEVICE_SECRET: 'x'.repeat(40),
    REDIS_URL: (await startRedisServer()).url,
    STORE_TIMEOUT: '5s',
  })
  document = JSON.parse((await ask('GET', '/api/openapi.json')).body) as Document
})

function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = authorized) {
  return send(gateway.adminPort, method, path, {
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

/** Compares a reply with what the document says of its status. */
function expectDescribed(
  method: string,
  path: string,
  { status, headers, body }: { status: number; headers: Readonly<Record<string, unknown>>; body: string },
): void {
  const operation = document.paths[path]?.[method.toLowerCase()]
  const response = operation?.responses[status] ?? operation?.responses['default']
  const [content] = Object.entries(response?.content ?? {})
  if (!content) throw new Error(`${method} ${path} ${status} is not described`)
  const [contentType, { schema }] = content
  expect(String(headers['content-type']).split(';')[0], body).toBe(contentType)
  const check = compile(schema)
  const value = contentType === 'application/json' ? (JSON.parse(body) as unknown) : body
  const isSound = check(value)
  expect(isSound, `${method} ${path} ${status}: ${ajv.errorsText(check.errors)} in ${body}`).toBe(true)
}

const ajv = new Ajv2020({ strict: false })
/** Compiled schemas by their text: many responses have the same schema, and compiling it takes longer than all its checks. */
const checks = new Map<string, Check>()

function compile(schema: Schema): Check {
  const text = JSON.stringify(schema)
  const check = checks.get(text) ?? ajv.compile({ ...schema, components: document.components })
  checks.set(text, check)
  return check
}

const client = { ip: '127.0.0.7' }
/** For each operation: bodies or queries that are answered 200, and some that get an error. */
const requests: Readonly<
  Record<
    string,
    { readonly good: readonly unknown[]; readonly bad?: Readonly<Record<number, readonly unknown[]>> }
  >
> = {
  'GET /api/status': { good: [''] },
  'GET /api/limits': { good: [''] },
  'GET /api/openapi.json': { good: [''] },
  'GET /api/replicas': { good: [''] },
  'GET /livez': { good: [''] },
  'GET /readyz': { good: [''] },
  'GET /metrics': { good: [''] },
  'POST /api/clients/ban': {
    good: [
      { client, for: '1h' },
      { client: '127.0.0.7', for: '365d', policy: 'login', reason: 'scraping ü' },
      { client: { id: `h:${'0'.repeat(22)}` }, for: '1s', policy: 'api' },
    ],
    bad: {
      400: [
        {},
        [],
        null,
        '"x"',
        '{',
        { client },
        { for: '1h' },
        { client, for: '366d' },
        { client, for: 60 },
        { client, for: '1h', and: 1 },
        { client, for: '1h', reason: 'x'.repeat(201) },
        { client, for: '1h', reason: 'a\nb' },
        { client, for: '1h', reason: null },
        { client: 7, for: '1h' },
        { client: { ip: false }, for: '1h' },
        { client: { global: true }, for: '1h' },
      ],
      404: [{ client, for: '1h', policy: 'none' }],
      413: [`{"client":"${'1'.repeat(17_000)}"}`],
    },
  },
  'GET /api/bans': {
    good: ['', '?limit=1', '?limit=10000'],
    bad: { 400: ['?limit=0', '?limit=10001', '?limit='] },
  },
  'POST /api/clients/override': {
    good: [
      { policy: 'login', client, requests: 9, for: '1h' },
      { policy: 'login', client, requests: 1_000_000_000, for: '1d', label: 'Acme' },
    ],
    bad: {
      400: [
        {},
        { policy: 'login', client, requests: 0, for: '1h' },
        { policy: 'login', client, requests: '9', for: '1h' },
        { policy: 'login', client, requests: 1.5, for: '1h' },
        { policy: 'tokens', client, requests: 19, for: '1h' },
        { policy: 'login', client, requests: 9, for: '0s' },
        { policy: 'login', client, requests: 9, for: '1h', label: 5 },
        { client, requests: 9, for: '1h' },
        { policy: 'api', client, requests: 9, for: '1h' },
      ],
      404: [{ policy: 'none', client, requests: 9, for: '1h' }],
    },
  },
  'GET /api/overrides': { good: ['', '?limit=1'], bad: { 400: ['?limit=x'] } },
  'POST /api/clients/inspect': {
    good: [
      { client },
      { policy: 'login', client: '127.0.0.7' },
      { policy: 'units', client: { global: true } },
    ],
    bad: {
      400: [
        {},
        { client: [] },
        { client: '' },
        { client, policy: 7 },
        { client, and: 1 },
        { policy: 'api', client },
      ],
      404: [{ client, policy: 'none' }],
    },
  },
  'POST /api/explain': {
    good: [
      { method: 'POST', target: '/login', ip: '127.0.0.7' },
      { method: 'POST', target: '/login', ip: '127.0.0.8' },
      {
        method: 'GET',
        target: '/api/a',
        host: 'app.example.com',
        headers: { 'x-api-key': 'k', cookie: ['sid=1', 'sid=2'] },
      },
      {
        method: 'GET',
        target: '/api/a',
        host: 'app.example.com',
        ip: '127.0.0.96',
        headers: { 'x-api-key': 'k' },
      },
      { method: 'GET', target: '/', ip: '127.0.0.97' },
      { method: 'GET', target: '/api/a', host: 'other' },
      { method: 'OPTIONS', target: '*' },
      { method: '?', target: '*' },
      { method: 'GET', target: '/export' },
      { method: 'GET', target: '/bucket' },
      { method: 'POST', target: '/units' },
      { method: 'POST', target: '/mail' },
      { method: 'POST', target: '/mail', body: '{"email":"a@example.com"}' },
      { method: 'GET', target: '/monthly' },
      { method: 'GET', target: '/bots', headers: { 'user-agent': 'bot' } },
      { method: 'GET', target: '/slow' },
      { method: 'GET', target: '/leased' },
    ],
    bad: {
      400: [
        {},
        { method: 'GET' },
        { method: 'GET', target: '/', and: 1 },
        { method: 'GET', target: '/', ip: 'x' },
      ],
    },
  },
  'GET /api/clients/limited': {
    good: ['', '?limit=1000', '?policy=login&limit=1', '?other=1'],
    bad: { 400: ['?limit=1001', '?limit=1e3', '?limit=-1'], 404: ['?policy=none'] },
  },
  'POST /api/clients/reset': {
    good: [{ client }, { policy: 'login', client }],
    bad: { 400: [{}, { client: null }], 404: [{ client, policy: 'none' }] },
  },
  'POST /api/clients/unban': {
    good: [{ client }, { client, policy: 'login' }],
    bad: { 400: [{}, { client, for: '1h' }, { client, and: 1 }], 404: [{ client, policy: 'none' }] },
  },
  'POST /api/clients/override/remove': {
    good: [
      { policy: 'login', client },
      { policy: 'login', client },
    ],
    bad: { 400: [{}, { client }, { policy: 'login' }], 404: [{ policy: 'none', client }] },
  },
  'POST /api/clients/plan': {
    good: [{ client }, { client, plan: 'pro' }, { client, policy: 'planned', plan: null }],
    bad: {
      400: [{}, { client: null }, { client, and: 1 }],
      404: [
        { client, plan: 'gold' },
        { client, policy: 'login' },
        { client, policy: 'none' },
      ],
    },
  },
  'GET /api/plans': { good: ['', '?limit=1'], bad: { 400: ['?limit=0', '?limit=x'] } },
  'POST /api/reload': { good: [{}], bad: { 400: [{ and: 1 }, [], null] } },
}

test('the document is OpenAPI', async () => {
  expect(document).toMatchObject({ openapi: '3.1.0' })
  expect(await new Validator().validate(document)).toEqual({ valid: true })
})

test('the document has exactly the paths of the server', async () => {
  const folder = join(import.meta.dirname, '../../proxy/admin')
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  const written = sources.flatMap((name) =>
    Array.from(
      readFileSync(join(folder, name), 'utf8').matchAll(/'(\/(?:api\/[a-z/.]+|livez|readyz|metrics))'/g),
      ([, path = '']) => path,
    ),
  )
  expect([...new Set(written)].toSorted()).toEqual(Object.keys(document.paths).toSorted())
  for (const [path, operations] of Object.entries(document.paths)) {
    const { status, headers } = await ask('PATCH', path)
    const methods = String(headers['allow'])
      .split(', ')
      .filter((method) => method !== 'HEAD')
    expect({ path, status, methods }).toEqual({
      path,
      status: 405,
      methods: Object.keys(operations).map((method) => method.toUpperCase()),
    })
  }
})

test('each operation is tried here', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect([...Object.keys(requests), 'GET /api/events'].toSorted()).toEqual(operations.toSorted())
})

describe.each(Object.entries(requests))('%s', (operation, { good, bad = {} }) => {
  const [method = '', path = ''] = operation.split(' ')
  const request = (asked: unknown, headers?: Record<string, string>) =>
    method === 'GET'
      ? ask(method, `${path}${String(asked)}`, undefined, headers)
      : ask(method, path, asked, headers)

  test('answers as the document says', async () => {
    // Puts a client over its limit.
    for (let i = 0; i < 4; i++) await gateway.send('POST', '/login', { from: '127.0.0.8' })
    for (const asked of good) {
      const reply = await request(asked)
      expect(reply.status, reply.body).toBe(200)
      expectDescribed(method, path, reply)
    }
  })

  test('the operation refuses invalid requests, as the document says', async () => {
    for (const [status, wrong] of Object.entries(bad)) {
      for (const asked of wrong) {
        const reply = await request(asked)
        expect(reply.status, JSON.stringify(asked)).toBe(Number(status))
        expectDescribed(method, path, reply)
        expect(document.paths[path]?.[method.toLowerCase()]?.responses).toHaveProperty(status)
      }
    }
  })

  test('the operation needs the token, JSON for a body that it takes, and no other body', async () => {
    const isGuarded = document.paths[path]?.[method.toLowerCase()]?.security.length !== 0
    const reply = await request(good[0], {})
    expect(reply.status).toBe(isGuarded ? 401 : 200)
    expectDescribed(method, path, reply)
    const other = await ask(method, path, '{}', {
      ...authorized,
      'content-type': 'text/plain',
      'content-length': '2',
    })
    expect(other.status).toBe(method === 'GET' ? 413 : 415)
    expectDescribed(method, path, other)
  })
})

test('the event stream is text/event-stream', async () => {
  const signal = AbortSignal.timeout(20_000)
  const url = `http://127.0.0.1:${gateway.adminPort}/api/events`
  expectDescribed('GET', '/api/events', await ask('GET', '/api/events', undefined, {}))
  const response = await fetch(url, { headers: authorized, signal })
  expect(response.status).toBe(200)
  const headers = Object.fromEntries(response.headers)
  expectDescribed('GET', '/api/events', { status: 200, headers, body: '' })
  await response.body?.cancel()
})

test('a reload of a wrong file tells the mistakes, as the document says', async () => {
  writeFileSync(settingsFile, table.replace('requests: 2', 'requests: 0'))
  const reply = await ask('POST', '/api/reload', {})
  expect(reply.status).toBe(422)
  expectDescribed('POST', '/api/reload', reply)
  writeFileSync(settingsFile, table.replace('requests: 2', 'requests: 3'))
  const right = await ask('POST', '/api/reload', {})
  expect(right.status).toBe(200)
  expectDescribed('POST', '/api/reload', right)
})
